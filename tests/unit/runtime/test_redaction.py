"""QUA-14: a planted key appears in nothing that is written."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from services.runtime.logging import configure_logging, get_logger
from services.runtime.redaction import REDACTED, is_secret_name, redact, redact_text, remember_secret

KEY = "planted-key-5f2c9d"


@pytest.mark.parametrize(
    "name",
    ["authorization", "Authorization", "api_key", "LLM_API_KEY", "apikey", "redis_password", "token", "id_token"],
)
def test_qua_14_names_of_secrets_are_known(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["prompt_tokens", "max_tokens", "first_token", "first_token_seconds", "keyboard"])
def test_qua_14_figures_about_tokens_stay_readable(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Authorization: Bearer abcdefgh", "Authorization: Bearer " + REDACTED),
        ("key sk-abcdefgh12345678 refused", f"key {REDACTED} refused"),
        ("redis://:s3cret@host:6379/0", f"redis://{REDACTED}@host:6379/0"),
        ("https://user:s3cret@host/v1", f"https://{REDACTED}@host/v1"),
        ("http://host:8000/v1 said no", "http://host:8000/v1 said no"),
        ("risk-averse agents", "risk-averse agents"),
    ],
)
def test_qua_14_secret_forms_inside_texts_are_replaced(text: str, kept: str) -> None:
    assert redact_text(text) == kept


def test_qua_14_nested_values_are_searched() -> None:
    remember_secret(KEY)
    value = {"headers": {"Authorization": "x"}, "list": [f"a {KEY} b", 3], "bytes": KEY.encode(), "none": None}
    assert redact(value) == {
        "headers": {"Authorization": REDACTED},
        "list": [f"a {REDACTED} b", 3],
        "bytes": REDACTED,
        "none": None,
    }


@pytest.fixture
def logged(capsys: pytest.CaptureFixture[str]) -> Iterator[pytest.CaptureFixture[str]]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield capsys
    root.handlers = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def test_qua_14_log_lines_hold_no_secret_even_in_tracebacks(logged: pytest.CaptureFixture[str]) -> None:
    remember_secret(KEY)
    configure_logging("store", "json")
    try:
        raise RuntimeError(f"upstream refused {KEY}")
    except RuntimeError:
        get_logger("test").exception("call failed", headers={"authorization": KEY}, body=f"x{KEY}")
    logging.getLogger("httpx").warning("GET %s", f"http://u:{KEY}@host/")
    err = logged.readouterr().err
    lines = [json.loads(line) for line in err.splitlines()]
    assert KEY not in err
    assert [line["event"] for line in lines] == ["call failed", f"GET http://{REDACTED}@host/"]
    assert "RuntimeError" in lines[0]["exception"]
    assert {line["service"] for line in lines} == {"store"}


def test_qua_14_an_unknown_object_is_written_without_its_secret(logged: pytest.CaptureFixture[str]) -> None:
    class Request:
        def __str__(self) -> str:
            return f"Request(key={KEY})"

        __repr__ = __str__

    remember_secret(KEY)
    for fmt in ("json", "console"):
        configure_logging("store", fmt)  # type: ignore[arg-type]
        get_logger("test").info("sent", request=Request())
    err = logged.readouterr().err
    assert KEY not in err
    assert err.count("sent") == 2


def test_lines_below_the_level_are_not_written(logged: pytest.CaptureFixture[str]) -> None:
    configure_logging("store", "json", "WARNING")
    get_logger("test").info("quiet")
    get_logger("test").warning("loud")
    assert [json.loads(line)["event"] for line in logged.readouterr().err.splitlines()] == ["loud"]
