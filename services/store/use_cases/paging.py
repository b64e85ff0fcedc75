"""One page of a list, in a stable order, with an opaque token for the next (STO-13)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Generic, TypeVar

from services.store.domain import page_tokens
from services.store.domain.tables import KEYS, key_types
from services.store.use_cases.ports import Ledger, LedgerReader, Query, Row

T = TypeVar("T")
# A page stays well below the message limit of 64 MiB even where every character takes three bytes.
MAX_PAGE_CHARS: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Size and token as the caller gave them; `default` and `most` are the list's own limits."""

    size: int
    token: str
    default: int = page_tokens.DEFAULT_PAGE_SIZE
    most: int = page_tokens.MAX_PAGE_SIZE

    @property
    def limit(self) -> int:
        """The number of items to return at most; raises InvalidRequest for a negative size."""
        return page_tokens.checked_page_size(self.size, self.default, self.most)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some items and the token of the next page, empty on the last."""

    items: Sequence[T]
    next_token: str


async def row_page(ledger: Ledger, query: Query, request: PageRequest) -> Page[Row]:
    """Return one page of a table; raises InvalidPageToken."""
    order = query.order or KEYS[query.table]
    mark = page_tokens.query_mark(
        query.table, {"equal": query.equal, "one_of": query.one_of, "without": query.not_containing}
    )
    after = page_tokens.decode(mark, request.token, key_types(order))
    limit = request.limit
    rows, more = await ledger.read(lambda reader: reader.page(replace(query, after=after), limit, MAX_PAGE_CHARS))
    return Page(rows, page_tokens.encode(mark, [rows[-1][name] for name in order]) if more else "")


async def row_chunks(ledger: Ledger, query: Query, chunk_rows: int) -> AsyncIterator[list[Row]]:
    """Yield all rows of a query in its order, some at a time, so that memory stays flat."""
    order = query.order or KEYS[query.table]
    more = True
    while more:
        rows, more = await ledger.read(partial(_chunk, query=query, chunk_rows=chunk_rows))
        if rows:
            query = replace(query, after=tuple(rows[-1][name] for name in order))
            yield rows


def name_page(kind: str, names: Sequence[str], request: PageRequest) -> Page[str]:
    """Return one page of names that stand in ascending order; raises InvalidPageToken."""
    mark = page_tokens.query_mark(kind, {})
    after = page_tokens.decode(mark, request.token, (str,))
    rest = [name for name in names if after is None or name > str(after[0])]
    chosen = rest[: request.limit]
    return Page(chosen, page_tokens.encode(mark, [chosen[-1]]) if len(rest) > len(chosen) else "")


def indexed_page(kind: str, items: Sequence[T], request: PageRequest) -> Page[T]:
    """Return one page of a fixed sequence, in its own order; raises InvalidPageToken."""
    mark = page_tokens.query_mark(kind, {})
    after = page_tokens.decode(mark, request.token, (int,))
    start = 0 if after is None else int(after[0])
    chosen = items[start : start + request.limit]
    end = start + len(chosen)
    return Page(chosen, page_tokens.encode(mark, [end]) if chosen and end < len(items) else "")


def _chunk(reader: LedgerReader, query: Query, chunk_rows: int) -> tuple[list[Row], bool]:
    return reader.page(query, chunk_rows, MAX_PAGE_CHARS)
