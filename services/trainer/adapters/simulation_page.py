"""The plot of `gate simulate`: one bar a cell, by how its gates ended; one HTML file without outside requests."""

from __future__ import annotations

import plotly.graph_objects as go

from services.trainer.domain.gate_simulation import Simulation

_ENDS = ("confirmed", "provisional", "direction", "futile", "exhausted")


def render_simulation(simulation: Simulation, length: int) -> str:
    """The page."""
    labels = [
        f"win {cell.rates.win:g}, loss {cell.rates.loss:g}<br>{cell.mean_units:.0f} units" for cell in simulation.cells
    ]
    figure = go.Figure(
        layout={
            "title": {"text": f"How simulated gates of {length} units end"},
            "barmode": "stack",
            "yaxis": {"tickformat": ".0%", "title": "share of gates"},
        }
    )
    for end in _ENDS:
        figure.add_bar(x=labels, y=[getattr(cell, f"{end}_share") for cell in simulation.cells], name=end)
    return str(figure.to_html(include_plotlyjs=True, full_html=True, config={"displaylogo": False}))
