"""The `videotree` command line (typer and rich)."""
