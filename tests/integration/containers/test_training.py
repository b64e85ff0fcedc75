"""DEP-4: training end to end over containers, with Redis gone and the store killed on the way."""

from __future__ import annotations

import subprocess

import pytest

from tests.integration.containers.stack import BUILD_TIMEOUT_SECONDS, Stack

pytestmark = [
    pytest.mark.container,
    pytest.mark.slow,
    pytest.mark.timeout(BUILD_TIMEOUT_SECONDS + 600),
]

SAMPLE = "/opt/app/services/bundled/examples/sample"
SHORT = {
    "VIDEOTREE_TRAINER_GATE_N_MAX": "12",
    "VIDEOTREE_TRAINER_HOLDOUT_TEST": "false",
    "VIDEOTREE_TRAINER_BATCH_SIZE": "12",
}
ONE_STEP = ("train", "--seed", "main", "--epochs", "1", "--steps", "1")
TWO_STEPS = (*ONE_STEP[:-1], "2")
# Long enough for a container to stop and start within it.
SLOW = {**SHORT, "VIDEOTREE_TRAINER_CONCURRENCY": "1"}


@pytest.fixture(scope="session")
def sample(stack: Stack) -> Stack:
    """The stack with the bundled sample imported and its seed made, by the commands a user would type."""
    for command in (
        ("import", "trees", f"{SAMPLE}/trees"),
        ("import", "questions", f"{SAMPLE}/questions.jsonl", "--dataset", "sample"),
        ("baseline",),
        ("diagnose",),
        ("split",),
        ("seed", "create", "main"),
    ):
        code, output = stack.videotree(*command)
        assert code == 0, f"{command}: {output}"
    return stack


def _read_until(process: subprocess.Popen[str], word: str) -> str:
    assert process.stdout is not None
    seen = ""
    for line in process.stdout:
        seen += line
        if word in line:
            return seen
    raise AssertionError(f"the run ended before it said {word!r}:\n{seen}")


def _rest(process: subprocess.Popen[str]) -> str:
    # Not communicate(): it reads past what the line-wise reading has buffered.
    assert process.stdout is not None
    output = process.stdout.read()
    process.wait(timeout=60)
    return output


def test_dep_4_steps_are_trained_over_containers_though_redis_stops_and_starts_on_the_way(sample: Stack) -> None:
    with sample.trainer(*TWO_STEPS, "--run-id", "without-redis", settings=SLOW) as process:
        seen = _read_until(process, "rollout")
        sample.compose("stop", "redis")
        sample.compose("start", "redis")
        assert process.poll() is None, "the training must still run when Redis is back"
        output = seen + _rest(process)
    sample.wait_until_healthy("redis")
    assert process.returncode == 0, output
    assert "val: final" in output


def test_dep_4_a_run_whose_store_was_killed_resumes_to_its_end(sample: Stack) -> None:
    with sample.trainer(*ONE_STEP, "--run-id", "store-killed", settings=SHORT) as process:
        seen = _read_until(process, "rollout")
        sample.compose("kill", "-s", "KILL", "store")
        output = seen + _rest(process)
    assert process.returncode == 1, output
    assert "videotree train --resume store-killed" in output
    assert "Traceback" not in output
    sample.compose("start", "store")
    sample.wait_until_healthy("store")
    code, output = sample.videotree("train", "--resume", "store-killed", settings=SHORT)
    assert code == 0, output
    assert "val: final" in output
