"""Runs a command's work, and turns how it ended into an exit code and one line that says what to do (CLI-2)."""

from __future__ import annotations

import asyncio
import os
import signal
import traceback
from collections.abc import Coroutine
from typing import TypeVar

import typer
from rich.console import Console

from services.runtime.config import ConfigError
from services.runtime.redaction import redact_text
from services.trainer.domain.errors import BudgetReached, TrainerError

T = TypeVar("T")

EXIT_FAILED = 1
EXIT_WRONG_USE = 2
EXIT_BUDGET = 3
EXIT_INTERRUPTED = 130
DEBUG_VARIABLE = "VIDEOTREE_DEBUG"

people = Console(stderr=True, highlight=False, soft_wrap=True)
"""Where everything for people goes; results go to standard output."""


class Interrupted(Exception):
    """Ctrl-C or SIGTERM; `hint` says how to go on."""

    def __init__(self, hint: str = "") -> None:
        self.hint = hint
        super().__init__(hint)


def run_command(work: Coroutine[None, None, T]) -> T:
    """The result of `work`; every way in which it fails ends the program with its exit code and one line."""
    try:
        return asyncio.run(_until_told_to_stop(work))
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise _ended(EXIT_INTERRUPTED, "interrupted; the same command goes on where it can") from None
    except Interrupted as stop:
        raise _ended(EXIT_INTERRUPTED, f"interrupted; {stop.hint}" if stop.hint else "interrupted") from None
    except BudgetReached as stop:
        raise _ended(EXIT_BUDGET, f"stopped by the budget: {stop}") from None
    except ConfigError as error:
        raise _ended(EXIT_WRONG_USE, f"error: {error}") from None
    except (TrainerError, OSError) as error:
        _show_trace()
        raise _ended(EXIT_FAILED, f"error: {error}") from None
    except typer.Exit:
        raise
    except Exception as error:
        _show_trace()
        hint = "" if debugging() else " (--debug shows where)"
        raise _ended(EXIT_FAILED, f"error: unexpected {type(error).__name__}: {error}{hint}") from None


def debugging() -> bool:
    """Whether --debug was given."""
    return bool(os.environ.get(DEBUG_VARIABLE))


async def _until_told_to_stop(work: Coroutine[None, None, T]) -> T:
    task = asyncio.ensure_future(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task


def _ended(code: int, line: str) -> typer.Exit:
    people.print(redact_text(line), markup=False)
    return typer.Exit(code)


def _show_trace() -> None:
    if debugging():
        people.print(redact_text(traceback.format_exc()), markup=False)
