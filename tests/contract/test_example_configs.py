"""TRN-15: the example configurations are accepted, and say what the experiment is said to be."""

import tomllib

import pytest

from services.inference.config import InferenceConfig
from services.runtime.bundled import bundled_path
from services.trainer.config import TrainerConfig


def section(example: str, name: str) -> dict[str, object]:
    content = (bundled_path("examples") / example / "videotree.toml").read_text(encoding="utf-8")
    return tomllib.loads(content)[name]


@pytest.mark.parametrize("example", ["nextqa", "videomme", "text_mcq"])
def test_trn_15_example_configurations_hold_only_known_keys(example: str) -> None:
    trainer = TrainerConfig.model_validate(section(example, "trainer"))
    InferenceConfig.model_validate(section(example, "inference"))
    assert trainer.skills_dir is not None
    assert (bundled_path("examples").parent / trainer.skills_dir).is_dir()


def test_trn_15_the_videomme_experiment_is_as_specified() -> None:
    trainer = TrainerConfig.model_validate(section("videomme", "trainer"))
    assert (trainer.test_size, trainer.val_ratio, trainer.val_wrong_min) == (600, 0.4, 20)
    assert (trainer.epochs, trainer.early_stop_patience, trainer.holdout_test) == (3, 2, True)
    assert (trainer.trainable_min_units, trainer.gate_n_max, trainer.concurrency) == (8, 60, 32)
