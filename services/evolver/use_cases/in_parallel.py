"""Doing several things at once and failing with the first error itself."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

_T = TypeVar("_T")


async def in_parallel(works: Iterable[Coroutine[Any, Any, _T]]) -> list[_T]:
    """Return the results in the order given. The first failure cancels the others and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in works]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures
    return [task.result() for task in tasks]
