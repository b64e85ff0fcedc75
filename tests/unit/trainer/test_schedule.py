from services.trainer.domain.schedule import Schedule, epoch_order

UNITS = tuple(f"u{index:02}" for index in range(10))


def test_trn_7_an_epoch_rolls_every_unit_out_once() -> None:
    schedule = Schedule(UNITS, batch_size=4, epochs=2, seed=1)
    assert schedule.steps_per_epoch == 3
    assert schedule.total_steps == 6
    seen = [unit for step in range(3) for unit in schedule.batch(schedule.position(1, step))]
    assert sorted(seen) == sorted(UNITS)


def test_trn_11_batches_do_not_depend_on_the_order_of_the_pool() -> None:
    backwards = Schedule(tuple(reversed(UNITS)), batch_size=4, epochs=1, seed=1)
    forwards = Schedule(UNITS, batch_size=4, epochs=1, seed=1)
    assert forwards.batch(forwards.position(0, 1)) == backwards.batch(backwards.position(0, 1))


def test_epochs_and_seeds_are_ordered_differently() -> None:
    orders = {tuple(epoch_order(UNITS, seed, epoch)) for seed in (0, 1) for epoch in (0, 1)}
    assert len(orders) == 4


def test_steps_of_an_epoch_can_be_capped() -> None:
    assert Schedule(UNITS, batch_size=4, epochs=1, seed=1, max_steps_per_epoch=2).steps_per_epoch == 2


def test_global_step_counts_through_the_epochs() -> None:
    schedule = Schedule(UNITS, batch_size=4, epochs=2, seed=1)
    assert schedule.position(1, 2).global_step == 5
