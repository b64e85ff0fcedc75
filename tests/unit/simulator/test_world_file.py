from pathlib import Path

import pytest

from services.simulator.adapters.world_file import load_knowledge, read_world
from services.simulator.domain.errors import WorldError
from services.simulator.domain.world import World


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("sed = 1", "sed"),
        ("seed = 'x'", "seed"),
        ("seed = [", "no TOML"),
        ("seed = " + "9" * 5000, "w.toml is no TOML"),
        ("seed = " + "[" * 5000 + "]" * 5000, "w.toml is no TOML"),
        ("[agent]\nnoise = -1", "agent.noise"),
        ("[agent]\nnois = 1", "agent.nois"),
        ("[agent]\nfollow_rate = 1.5", "agent.follow_rate"),
        ('[[advice]]\nbehaviour = "fly"\nphrases = ["x"]', "fly"),
        ('[[advice]]\nbehaviour = "look_after"\nphrases = ["("]', "regular expression"),
        ('[[advice]]\nbehaviour = "look_after"\nphrases = []', "phrases"),
        ('[[needs]]\npattern = "["\nbehaviours = []', "needs.pattern"),
        ("[faults.rates]\nboom = 0.1", "boom"),
        ("[faults.rates]\nhtml = 0.6\nempty = 0.6", "more than 1"),
        ("[evolve.mixture]\nhelpful = 0.0", "evolve.mixture"),
        ('[[evolve.proposals]]\nquality = "fine"\ntext = "x"', "fine"),
        ("[latency]\nmedian_ms = -5", "latency.median_ms"),
        ("[dice]\nright = {Colour = 2}", "dice.right.Colour"),
        ("[judge]\naccuracy = 7", "judge.accuracy"),
    ],
)
def test_a_faulty_world_is_refused_naming_the_key(text: str, named: str) -> None:
    with pytest.raises(WorldError, match=named):
        read_world(text, "w.toml")


def test_an_empty_world_is_the_default_one() -> None:
    assert read_world("", "w.toml") == World()


def test_missing_and_faulty_answers_are_refused(tmp_path: Path) -> None:
    world = tmp_path / "world.toml"
    world.write_text('answers = "q.jsonl"')
    with pytest.raises(WorldError, match=r"q\.jsonl"):
        load_knowledge(world)
    (tmp_path / "q.jsonl").write_text("{}\n")
    with pytest.raises(WorldError, match="line 1"):
        load_knowledge(world)
