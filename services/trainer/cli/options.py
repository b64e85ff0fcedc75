"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Workspace = Annotated[str | None, typer.Option("--workspace", "-w", help="Workspace to work on.")]
Data = Annotated[
    Path | None,
    typer.Option("--data", help="Data root; asks for an embedded stack of its own (else VIDEOTREE_DATA, or ./data)."),
]
Demo = Annotated[bool, typer.Option("--demo", help="Use the bundled sample and the simulated model.")]
Simulated = Annotated[bool, typer.Option("--simulated", help="Use the simulated model on your own data.")]
World = Annotated[Path | None, typer.Option("--world", help="World file of the simulated model (with --simulated).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
Dataset = Annotated[str | None, typer.Option("--dataset", help="Question set of the library.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]
