"""Reading the arguments of a tool call; what is wrong is told to the agent."""

from collections.abc import Mapping
from typing import Any


class InvalidToolCall(ValueError):
    """A tool call that can't be carried out; the message is written for the model, and no step is used."""


def text_arg(args: Mapping[str, Any], name: str, *, default: str | None = None) -> str:
    """The text argument `name`, or `default` where it is absent. Raises InvalidToolCall."""
    value = args.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, str) or not value.strip():
        raise InvalidToolCall(f'the argument "{name}" must be a text that is not empty')
    return value.strip()


def whole_number_arg(args: Mapping[str, Any], name: str, *, default: int, low: int, high: int) -> int:
    """The whole number `name` in [low, high]; digits in quotes count. Raises InvalidToolCall."""
    value = args.get(name, default)
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 10:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidToolCall(f'the argument "{name}" must be a whole number from {low} to {high}')
    return value


def texts_arg(args: Mapping[str, Any], name: str, *, most: int) -> list[str]:
    """A list of 1 to `most` different texts; a single text counts as a list of one. Raises InvalidToolCall."""
    value = args.get(name)
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(item, str) and item.strip() for item in items):
        raise InvalidToolCall(f'the argument "{name}" must be a list of texts')
    texts = list(dict.fromkeys(item.strip() for item in items))
    if not 1 <= len(texts) <= most:
        raise InvalidToolCall(f'the argument "{name}" must hold 1 to {most} texts')
    return texts
