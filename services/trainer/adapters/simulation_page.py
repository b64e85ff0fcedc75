"""The plot of `gate simulate`: one bar a cell, by how its gates ended; one HTML file without outside requests."""

from __future__ import annotations

import plotly.graph_objects as go

from services.trainer.adapters.page_templates import embedded_figure, page_template
from services.trainer.domain.gate_simulation import Simulation

_ENDS = {
    "confirmed": "#2e9e5b",
    "provisional": "#8fd0a8",
    "exhausted": "#8a94a3",
    "futile": "#e0a458",
    "direction": "#d4584e",
}
"""How a gate ends, and the colour of that: accepts are green."""


def render_simulation(simulation: Simulation, length: int) -> str:
    """The page."""
    labels = [
        f"win {cell.rates.win:g}, loss {cell.rates.loss:g}<br>{cell.mean_units:.0f} units on average"
        for cell in simulation.cells
    ]
    figure = go.Figure(
        layout={
            "barmode": "stack",
            "height": 460,
            "margin": {"t": 20},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "yaxis": {"tickformat": ".0%", "title": "share of gates"},
        }
    )
    for end, colour in _ENDS.items():
        shares = [getattr(cell, f"{end}_share") for cell in simulation.cells]
        figure.add_bar(x=labels, y=shares, name=end, marker_color=colour)
    return page_template("simulation.html.jinja").render(
        figure=embedded_figure("ends", figure), length=length, gain=simulation.detectable_gain
    )
