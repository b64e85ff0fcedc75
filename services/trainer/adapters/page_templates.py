"""What all pages have in common: their templates, and figures embedded so that nothing is asked for from outside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2
import plotly.graph_objects as go
from plotly.io.json import to_json_plotly
from plotly.offline import get_plotlyjs

_TEMPLATES = Path(__file__).parent / "pages"


def page_template(name: str) -> jinja2.Template:
    """A template of `pages/`. Everything that it is given is escaped, but for figures and plotly's own program."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["percent"] = percent
    environment.filters["number"] = number
    environment.globals["plotly_js"] = get_plotlyjs()
    return environment.get_template(name)


def embedded_figure(name: str, figure: go.Figure | dict[str, Any]) -> dict[str, str]:
    """A figure as a page embeds it; `</` is broken up so that no text can end the script."""
    return {"id": name, "json": str(to_json_plotly(figure)).replace("</", "<\\/")}


def percent(value: float | None) -> str:
    """A share for people."""
    return "not recorded" if value is None else f"{value:.1%}"


def number(value: float | None) -> str:
    """A number for people."""
    return "not recorded" if value is None else f"{value:.4g}"
