"""The simulator's configuration: the section `[simulator]`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from services.runtime.config import Section


class SimulatorConfig(Section):
    """Where the simulator listens, and which world it shows."""

    host: str = Field("127.0.0.1", description="Address to listen on")
    port: int = Field(8060, ge=0, le=65535, description="HTTP port; 0 takes a free one")
    world: Path | None = Field(None, description="World file (TOML); without one the models know no advice")
    log_format: Literal["auto", "json", "console"] = Field(
        "auto", description="JSON unless standard error is a terminal"
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field("INFO", description="Least level that is logged")
