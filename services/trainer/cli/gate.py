"""`videotree gate simulate`: how often a parameter set accepts, for given true flip rates (GAT-11)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from services.trainer.adapters.simulation_page import render_simulation
from services.trainer.cli import options
from services.trainer.cli.output import print_json, print_line, print_rows
from services.trainer.cli.running import people, run_command
from services.trainer.cli.session import load_config, open_session
from services.trainer.domain.gate_simulation import FlipRates, Simulation

app = typer.Typer(help="The gate's statistics.", no_args_is_help=True)

_DEFAULT_CELLS = ("0.10/0.10", "0.20/0.10", "0.30/0.10", "0.30/0.05")


@app.callback()
def group() -> None:
    """Look at the gate's statistics before trusting it."""


@app.command("simulate")
def simulate(
    cells: Annotated[
        list[str] | None, typer.Option("--cell", help="P(win)/P(loss) of a unit, such as 0.3/0.1.")
    ] = None,
    length: Annotated[int, typer.Option("--length", min=1, help="Ladder length.")] = 60,
    gates: Annotated[int, typer.Option("--gates", min=1, help="Simulated gates a cell.")] = 20_000,
    mixture: Annotated[str | None, typer.Option("--mixture", help="uniform or one_sided.")] = None,
    p1: Annotated[float | None, typer.Option("--p1", help="Win probability that the direction exit tests.")] = None,
    random_seed: Annotated[int, typer.Option("--random-seed", help="Seed of the draws.")] = 0,
    plot: Annotated[Path | None, typer.Option("--plot", help="Write a page with a plot here.")] = None,
    data: options.Data = None,
    as_json: options.AsJson = False,
) -> None:
    """Simulate gates: shares confirmed, accepted provisionally and rejected, and mean units consumed.

    Example: videotree gate simulate --cell 0.3/0.1 --length 60 --plot gate.html
    """
    rates = [_flip_rates(cell) for cell in cells or _DEFAULT_CELLS]

    async def work() -> Simulation:
        config = load_config({"mixture": mixture, "p1": p1})
        async with open_session(config, data=data, needs=("gate",)) as session:
            parameters = config.training_settings().verdict_parameters
            return await session.services.gate.simulate(parameters, length, gates, rates, random_seed)

    simulation = run_command(work())
    if plot is not None:
        plot.write_text(render_simulation(simulation, length), encoding="utf-8")
        people.print(f"plot: {plot}", markup=False)
    if as_json:
        print_json(simulation)
        return
    rows = [
        {
            "win": cell.rates.win,
            "loss": cell.rates.loss,
            "confirmed": f"{cell.confirmed_share:.1%}",
            "provisional": f"{cell.provisional_share:.1%}",
            "direction": f"{cell.direction_share:.1%}",
            "futile": f"{cell.futile_share:.1%}",
            "exhausted": f"{cell.exhausted_share:.1%}",
            "mean units": f"{cell.mean_units:.1f}",
            "std. error": f"{cell.accept_standard_error:.2%}",
        }
        for cell in simulation.cells
    ]
    print_rows(rows, as_json=False, empty="")
    gain = simulation.detectable_gain
    print_line(
        f"smallest true gain confirmed with 80% probability at {length} units: "
        + ("none" if gain is None else f"{gain:.2f}")
    )


def _flip_rates(cell: str) -> FlipRates:
    try:
        win, loss = (float(part) for part in cell.split("/"))
    except ValueError:
        raise typer.BadParameter(f"--cell is two numbers such as 0.3/0.1, not {cell!r}") from None
    if min(win, loss) < 0 or win + loss > 1:
        raise typer.BadParameter(f"--cell is two probabilities that add up to at most 1, not {cell!r}")
    return FlipRates(win, loss)
