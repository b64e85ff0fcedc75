"""The `videotree` command: what it is for, and its commands."""

from __future__ import annotations

import os
import sys

import typer

from services.trainer.cli.checks import cache_app, doctor, models
from services.trainer.cli.gate import app as gate_app
from services.trainer.cli.imports import app as import_app
from services.trainer.cli.output import print_line
from services.trainer.cli.prepare import baseline, diagnose, seed_app, split
from services.trainer.cli.results import backup, diff, export, plan, report, restore, rollback, runs
from services.trainer.cli.running import DEBUG_VARIABLE
from services.trainer.cli.stack import config_app, serve, up
from services.trainer.cli.train import train

GOLDEN_PATH = """\
videotree trains the skills of an LLM agent that answers questions about long videos.
A skill is a Markdown file; an edit of it is kept only when a statistical gate confirms that it helps.

With your own model (any OpenAI-compatible endpoint in LLM_BASE_URL, LLM_MODEL, LLM_API_KEY):
  1. videotree import questions FILE --dataset NAME     read a question set (and: videotree import trees DIR)
  2. videotree doctor                                   check services, endpoints and data, with a fix for each fault
  3. videotree train                                    baseline, diagnosis and split first, where they are missing

Without a model:
  videotree train --demo                                the bundled sample and a simulated model, in about a minute

videotree --help lists every command; each has an example in its own --help."""

app = typer.Typer(
    name="videotree",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    debug: bool = typer.Option(False, "--debug", help="Show where an error arose (also after a command)."),
) -> None:
    """Train the skills of an LLM agent that answers questions about long videos."""
    if context.invoked_subcommand is None:
        print_line(GOLDEN_PATH)


app.command()(train)
app.command()(baseline)
app.command()(diagnose)
app.command()(split)
app.add_typer(seed_app, name="seed")
app.add_typer(import_app, name="import")
app.command()(up)
app.command()(serve)
app.add_typer(config_app, name="config")
app.command()(doctor)
app.command()(models)
app.add_typer(cache_app, name="cache")
for command in (plan, report, runs, diff, export, rollback, backup, restore):
    app.command()(command)
app.add_typer(gate_app, name="gate")


def main() -> int:
    """Runs the command line; the exit code is the command's own."""
    if "--debug" in sys.argv:
        sys.argv.remove("--debug")
        os.environ[DEBUG_VARIABLE] = "1"
    app()
    return 0
