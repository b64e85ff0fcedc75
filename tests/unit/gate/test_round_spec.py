from dataclasses import replace

import pytest

from services.gate.domain.errors import BadRunPrefix, InvalidRequest, OverlappingTargets
from services.gate.domain.round_spec import arm_run_id
from services.gate.domain.unit_result import Arm
from tests.builders.gate_builders import round_spec, type_spec


def test_gat_5_run_ids_name_run_epoch_step_type_and_arm() -> None:
    spec = round_spec([type_spec("Action Reasoning", [1])])
    assert spec.arm_run("Action Reasoning", Arm.BASE) == "train_e0_s1_gate_action-reasoning_base"
    assert spec.arm_run("Action Reasoning", Arm.CAND) == "train_e0_s1_gate_action-reasoning_cand"


def test_gat_5_a_prefix_without_the_mark_is_refused() -> None:
    with pytest.raises(BadRunPrefix, match="_gate_"):
        arm_run_id("train_e0_s1", Arm.BASE)


def test_gat_10_two_types_on_one_file_are_refused_naming_file_and_types() -> None:
    one, other = type_spec("A", [1]), type_spec("B", [1])
    with pytest.raises(OverlappingTargets) as raised:
        round_spec([one, replace(other, target_file=one.target_file)])
    assert raised.value.metadata == {"file": "a.md", "task_types": "A, B"}
    assert raised.value.field == "specs[1].target_file"


@pytest.mark.parametrize("second", ["A", "a", "A!"])
def test_gat_5_types_that_would_share_their_run_ids_are_refused(second: str) -> None:
    with pytest.raises(InvalidRequest, match="share the slug 'a'") as raised:
        round_spec([type_spec("A", [1]), replace(type_spec(second, [1]), target_file="other.md")])
    assert raised.value.field == "specs[1].task_type"


@pytest.mark.parametrize("name", ["../a.md", "a/b.md", ".a.md", "a.txt", "A.md", "a.md\n"])
def test_qua_14_a_target_that_is_no_plain_file_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        round_spec([replace(type_spec("A", [1]), target_file=name)])
    assert raised.value.field == "specs[0].target_file"
