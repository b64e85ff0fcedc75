"""Rows of a parquet file; pyarrow is an extra that only this needs."""

from pathlib import Path
from typing import Any

from services.trainer.domain.importing.errors import UnreadableSource


def read_rows(path: Path) -> list[dict[str, Any]]:
    """All rows as mappings from column to value. Raises UnreadableSource, also where pyarrow is not installed."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise UnreadableSource(f"{path}: reading parquet needs pyarrow: pip install 'videotree[parquet]'") from error
    try:
        rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    except (OSError, ValueError, OverflowError, pa.ArrowException) as error:  # also texts that are no UTF-8
        reason = " ".join(str(error).split())
        raise UnreadableSource(f"{path}: not a parquet file that can be read: {reason}") from error
    return rows
