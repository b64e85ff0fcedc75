import statistics

from services.simulator.domain.draws import Draws


def test_sim_1_equal_keys_give_equal_draws_in_any_order() -> None:
    one, other = Draws(1, "agent", None, "prompt"), Draws(1, "agent", None, "prompt")
    first = [one.uniform("a"), one.uniform("b")]
    assert [other.uniform("b"), other.uniform("a")] == first[::-1]


def test_sim_1_world_seed_prompt_and_request_seed_each_change_a_draw() -> None:
    draws = [Draws(*key).uniform("a") for key in ((1, None, "p"), (2, None, "p"), (1, 7, "p"), (1, None, "q"))]
    assert len(set(draws)) == 4


def test_uniform_draws_fill_the_unit_interval_evenly() -> None:
    draws = Draws("even")
    values = [draws.uniform(str(index)) for index in range(4000)]
    assert min(values) >= 0.0
    assert max(values) < 1.0
    assert abs(statistics.mean(values) - 0.5) < 0.02
    assert abs(statistics.pstdev(values) - 0.2887) < 0.01


def test_log_normal_has_the_median_asked_for() -> None:
    draws = Draws("latency")
    values = [draws.log_normal(str(index), 80.0, 0.6) for index in range(3000)]
    assert abs(statistics.median(values) / 80.0 - 1) < 0.06
    assert draws.log_normal("x", 0.0, 0.6) == 0.0


def test_weighted_choice_follows_the_weights_and_skips_zero() -> None:
    draws = Draws("weights")
    found = [draws.weighted(str(index), {"a": 3.0, "never": 0.0, "b": 1.0}) for index in range(4000)]
    assert set(found) == {"a", "b"}
    assert abs(found.count("a") / 4000 - 0.75) < 0.03


def test_shuffled_keeps_every_item_and_moves_some() -> None:
    items = list(range(20))
    assert sorted(Draws("s").shuffled("x", items)) == items
    assert Draws("s").shuffled("x", items) != items
