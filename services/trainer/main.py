"""Entry point of the `videotree` command."""

from __future__ import annotations

from services.trainer.cli.app import main

__all__ = ["main"]

if __name__ == "__main__":
    raise SystemExit(main())
