"""What the base arm of a round stands on, and under which key its results are cached. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from services.gate.domain.errors import InvalidRequest
from services.gate.domain.round_spec import RoundSpec, Target, TypeSpec
from services.gate.use_cases.ports import BaselineKey, PooledUnit
from services.skills import skill_file, text_sha256


def base_text(spec: TypeSpec, skills: Mapping[str, str], prompts: Mapping[str, str], path: str) -> str:
    """What the base arm has where the candidate has its text. Raises InvalidRequest when the version lacks it."""
    if spec.target is Target.SKILL:
        return _serving_skill(spec.task_type, skills)
    if spec.target_file not in prompts:
        raise InvalidRequest(f"the prompts version has no file {spec.target_file}", field=f"{path}.target_file")
    return prompts[spec.target_file]


def baseline_keys(
    spec: RoundSpec, units: Mapping[str, PooledUnit], skills: Mapping[str, str]
) -> Mapping[str, BaselineKey]:
    """The key of each ladder unit's cached base result, by unit id.

    Whatever the candidate replaces, the base arm answers a unit with the skill that serves the unit's own type and
    with the prompts version. So the base of a skill's gate and that of a prompt's are one draw, and either gate uses
    what the other has written; a new version of the prompts has another name and starts without results.
    """
    of_type: dict[str, BaselineKey] = {}
    keys: dict[str, BaselineKey] = {}
    for unit in (unit for one in spec.types for unit in one.ladder):
        task_type = units[unit.unit_id].task_type
        if task_type not in of_type:
            sha256 = text_sha256(_serving_skill(task_type, skills))
            of_type[task_type] = BaselineKey(spec.workspace, task_type, sha256, spec.prompts_version)
        keys[unit.unit_id] = of_type[task_type]
    return keys


def _serving_skill(task_type: str, skills: Mapping[str, str]) -> str:
    serving = skill_file(task_type, skills)
    if serving not in skills:
        message = f"the skills version has neither a file for {task_type!r} nor {serving}"
        raise InvalidRequest(message, field="skills_version")
    return skills[serving]
