"""A training run that is ready to go: everything that stays the same from its first step to its last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.questions import Question
from services.trainer.domain.answering import Answer, AnswerJob, require_living_endpoint
from services.trainer.domain.checkpoint import Checkpoint, Fingerprints
from services.trainer.domain.edit_budget import edit_budget_at
from services.trainer.domain.errors import MissingResults
from services.trainer.domain.evolution import LeakGuard
from services.trainer.domain.gate_round import AgentOptions
from services.trainer.domain.pools import PoolUnit
from services.trainer.domain.schedule import Position, Schedule
from services.trainer.domain.settings import TrainingSettings
from services.trainer.domain.trainability import Trainability
from services.trainer.domain.trainer_state import SCHEMA_VERSION, TrainerState, state_to_json
from services.trainer.use_cases.ports import Agent, Progress, Services


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """`diag` and `val` hold the trainable types only, `test` all; `baseline` is the seed's result of each unit."""

    services: Services
    progress: Progress
    settings: TrainingSettings
    run_id: str
    workspace: str
    dataset: str
    questions: Mapping[str, Question]
    diag: tuple[PoolUnit, ...]
    val: tuple[PoolUnit, ...]
    test: tuple[PoolUnit, ...]
    baseline: Mapping[str, bool]
    trainability: Trainability
    schedule: Schedule
    fingerprints: Fingerprints

    def agent_options(self) -> AgentOptions:
        """How agents are run, in rollouts, evaluations and both arms of a gate alike."""
        return AgentOptions(self.settings.max_steps, self.settings.solver, self.settings.skill_mode)

    def edit_budget(self, position: Position) -> int:
        """How many edits a proposal of this step may hold."""
        return edit_budget_at(
            position.global_step,
            self.schedule.total_steps,
            self.settings.edit_budget_start,
            self.settings.edit_budget_end,
            self.settings.edit_budget_schedule,
        )

    def leak_guards(self) -> tuple[LeakGuard, ...]:
        """The wording that must not appear in a skill: every question of every pool, with its right option."""
        pooled = [question for unit in (*self.diag, *self.val, *self.test) for question in unit.question_ids]
        return tuple(_leak_guard(self.questions[question]) for question in pooled)

    def checkpoint(self, epoch: int, step: int, state: TrainerState) -> Checkpoint:
        """A checkpoint whose next piece of work is `step` of `epoch`.

        Its prompts are those that the run has put in force by then, so that only what others changed is refused.
        """
        evolved = {"prompts": state.prompts_fingerprint} if state.prompts_fingerprint else {}
        return Checkpoint(
            run_id=self.run_id,
            epoch=epoch,
            step=step,
            global_step=self.schedule.position(epoch, step).global_step,
            trainer_state_json=state_to_json(state),
            fingerprints=Fingerprints({**self.fingerprints.values, **evolved}),
            schema_version=SCHEMA_VERSION,
        )

    def job(
        self,
        units: Sequence[PoolUnit],
        run_id: str,
        salt: str,
        skills_version: str,
        prompts_version: str,
        *,
        overrides: Mapping[str, str],
        resume: bool,
    ) -> AnswerJob:
        """The work of answering every question of `units`."""
        return AnswerJob(
            workspace=self.workspace,
            dataset=self.dataset,
            question_ids=tuple(question for unit in units for question in unit.question_ids),
            skills_version=skills_version,
            prompts_version=prompts_version,
            run_id=run_id,
            salt=salt,
            solver=self.settings.solver,
            skill_mode=self.settings.skill_mode,
            max_steps=self.settings.max_steps,
            concurrency=self.settings.concurrency,
            resume=resume,
            overrides=overrides,
        )


async def answer_all(agent: Agent, progress: Progress, job: AnswerJob) -> list[Answer]:
    """All answers of a job, by question id.

    Raises EndpointDown when every one of the first answers failed, MissingResults when the stream ended early.
    """
    answers: list[Answer] = []
    async for answer in agent.answer(job):
        answers.append(answer)
        progress.answered(answer)
        require_living_endpoint(answers, len(job.question_ids))
    missing = sorted(set(job.question_ids) - {answer.question_id for answer in answers})
    if missing:
        raise MissingResults(f"questions of {job.run_id} were not answered", missing, "run the command again")
    return sorted(answers, key=lambda answer: answer.question_id)


def _leak_guard(question: Question) -> LeakGuard:
    return LeakGuard(question.text, question.options[question.letters.index(question.answer)])
