"""CLI-3: one file, the environment above it, the command line above both, and errors that say what to mend."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import Field, SecretStr

from services.runtime.channels import ClientCredentials
from services.runtime.config import ConfigError, Section, ServingConfig, load_section
from services.runtime.redaction import redact_text
from services.runtime.show_config import shown_settings


class Example(Section):
    width: int = Field(8, ge=1, le=64)
    roles: dict[str, str] = Field(default_factory=dict)
    redis_url: str | None = Field(None, validation_alias="REDIS_URL")
    store_address: str = Field("127.0.0.1:50051", validation_alias="VIDEOTREE_STORE_ADDRESS")
    api_key: SecretStr | None = Field(None, validation_alias="LLM_API_KEY")


class Required(Section):
    base_url: str


class ExampleService(ServingConfig):
    port: int = 50051
    metrics_port: int = 9051


@pytest.fixture
def config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "videotree.toml"
    monkeypatch.setenv("VIDEOTREE_CONFIG", str(path))
    path.write_text("", encoding="utf-8")
    return path


def test_cli_3_the_command_line_beats_the_environment_beats_the_file_beats_the_default(
    config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load_section(Example, "inference").width == 8
    config_file.write_text("[inference]\nwidth = 16", encoding="utf-8")
    assert load_section(Example, "inference").width == 16
    monkeypatch.setenv("VIDEOTREE_INFERENCE_WIDTH", "24")
    assert load_section(Example, "inference").width == 24
    assert load_section(Example, "inference", {"width": 32}).width == 32
    assert load_section(Example, "inference", {"width": None}).width == 24


def test_cli_3_each_value_says_where_it_comes_from(config_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config_file.write_text('[inference]\nroles = {judge = "big"}', encoding="utf-8")
    monkeypatch.setenv("REDIS_URL", "redis://:hunter2hunter2@127.0.0.1:6379/0")
    config = load_section(Example, "inference", {"width": 32})
    assert {row["key"]: row["source"] for row in shown_settings(config)} == {
        "width": "command line",
        "roles": f"{config_file} [inference]",
        "redis_url": "REDIS_URL",
        "store_address": "default",
        "api_key": "default",
    }


def test_cli_3_shown_values_hold_no_secret(config_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://:hunter2hunter2@127.0.0.1:6379/0")
    monkeypatch.setenv("LLM_API_KEY", "sk-planted-0123456789")
    text = str(shown_settings(load_section(Example, "inference")))
    assert "hunter2" not in text
    assert "planted" not in text
    assert "redacted" in text


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[inference]\nwidht = 3", ["widht", "width", "[inference]"]),
        ("[inference]\nwidth = 65", ["width", "64", "65"]),
        ('[inference]\nwidth = "many"', ["width", "integer", "many"]),
        ("[inferense]\nwidth = 3", ["[inferense]", "inference"]),
        ("[inference\nwidth = 3", ["TOML", "line 1"]),
        ("inference = 3", ["inference", "section"]),
        ('[inference]\napi_key = "sk-planted-0123456789"', ["api_key", "LLM_API_KEY", "api_key_file"]),
    ],
)
def test_cli_3_a_fault_in_the_file_names_the_file_the_key_and_the_fix(
    config_file: Path, text: str, named: list[str]
) -> None:
    config_file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_section(Example, "inference")
    assert "planted" not in str(caught.value)
    for part in (str(config_file), *named):
        assert part in str(caught.value)


def test_cli_3_a_wrong_variable_is_named(config_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIDEOTREE_INFERENCE_WIDTH", "0")
    with pytest.raises(
        ConfigError, match=r"VIDEOTREE_INFERENCE_WIDTH: width: .*greater than or equal to 1 \(got '0'\)"
    ):
        load_section(Example, "inference")


def test_cli_3_an_empty_variable_counts_as_not_set(config_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("VIDEOTREE_INFERENCE_WIDTH", "LLM_API_KEY", "LLM_API_KEY_FILE"):
        monkeypatch.setenv(variable, "")
    assert load_section(Example, "inference") == Example()


def test_cli_3_an_unknown_variable_of_the_section_is_refused(
    config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIDEOTREE_INFERENCE_WIDHT", "3")
    with pytest.raises(ConfigError, match="did you mean VIDEOTREE_INFERENCE_WIDTH"):
        load_section(Example, "inference")


def test_cli_3_the_address_of_a_service_is_not_a_key_of_that_service(
    config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIDEOTREE_STORE_ADDRESS", "store:50051")
    assert load_section(ExampleService, "store").port == 50051
    assert load_section(Example, "inference").store_address == "store:50051"


def test_cli_3_a_missing_value_says_how_to_set_it(config_file: Path) -> None:
    with pytest.raises(ConfigError, match=r"base_url is missing; set it there or as VIDEOTREE_TRAINER_BASE_URL"):
        load_section(Required, "trainer")


def test_cli_3_structured_values_in_the_environment_are_json(
    config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIDEOTREE_INFERENCE_ROLES", '{"judge": "big"}')
    assert load_section(Example, "inference").roles == {"judge": "big"}
    monkeypatch.setenv("VIDEOTREE_INFERENCE_ROLES", "{judge}")
    with pytest.raises(ConfigError, match="VIDEOTREE_INFERENCE_ROLES: must be JSON"):
        load_section(Example, "inference")


def test_cli_3_a_named_file_that_does_not_exist_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIDEOTREE_CONFIG", str(tmp_path / "absent.toml"))
    with pytest.raises(ConfigError, match=r"absent\.toml"):
        load_section(Example, "inference")


def test_cli_3_without_any_file_the_defaults_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIDEOTREE_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    assert load_section(Example, "inference") == Example()


def test_cli_3_a_secret_comes_from_the_file_that_a_variable_names(
    config_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "key"
    secret.write_text("from-a-file-1234\n", encoding="utf-8")
    monkeypatch.setenv("LLM_API_KEY_FILE", str(secret))
    config = load_section(Example, "inference")
    assert config.api_key is not None
    assert config.api_key.get_secret_value() == "from-a-file-1234"
    assert config.source_of("api_key") == "LLM_API_KEY_FILE"
    assert redact_text("key=from-a-file-1234") == "key=[redacted]"


def test_cli_3_a_secret_comes_from_the_file_that_a_key_names_relative_to_the_configuration(config_file: Path) -> None:
    (config_file.parent / "key").write_text("beside-the-toml", encoding="utf-8")
    config_file.write_text('[inference]\napi_key_file = "key"', encoding="utf-8")
    config = load_section(Example, "inference")
    assert config.api_key is not None
    assert config.api_key.get_secret_value() == "beside-the-toml"


@pytest.mark.parametrize(("content", "fault"), [(None, "can't read"), ("  \n", "is empty")])
def test_cli_3_a_bad_secret_file_is_an_error(
    config_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None, fault: str
) -> None:
    secret = tmp_path / "key"
    if content is not None:
        secret.write_text(content, encoding="utf-8")
    monkeypatch.setenv("LLM_API_KEY_FILE", str(secret))
    with pytest.raises(ConfigError, match=f"LLM_API_KEY_FILE: .*{fault}"):
        load_section(Example, "inference")


def test_cli_3_a_secret_given_twice_is_an_error(
    config_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_API_KEY", "one-secret")
    monkeypatch.setenv("LLM_API_KEY_FILE", str(tmp_path / "key"))
    with pytest.raises(ConfigError, match="both set"):
        load_section(Example, "inference")


def test_cli_3_the_runtime_section_serves_every_service_and_its_own_section_wins(config_file: Path) -> None:
    config_file.write_text(
        '[runtime]\nlog_level = "DEBUG"\ngrace_seconds = 3\n[store]\ngrace_seconds = 5', encoding="utf-8"
    )
    config = load_section(ExampleService, "store")
    assert (config.log_level, config.grace_seconds) == ("DEBUG", 5)
    assert config.source_of("log_level") == f"{config_file} [runtime]"


def test_cli_3_each_process_reads_its_part_of_the_runtime_section(
    config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config_file.write_text('[runtime]\nlog_level = "DEBUG"\ntoken_file = "t"', encoding="utf-8")
    monkeypatch.setenv("VIDEOTREE_RUNTIME_HOST", "0.0.0.0")
    assert load_section(ClientCredentials, "runtime").token_file == Path("t")
    assert load_section(Example, "inference").width == 8


def test_cli_3_a_key_or_variable_that_no_process_shares_is_refused(
    config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIDEOTREE_RUNTIME_HOTS", "0.0.0.0")
    with pytest.raises(ConfigError, match="VIDEOTREE_RUNTIME_HOTS; did you mean VIDEOTREE_RUNTIME_HOST"):
        load_section(ExampleService, "store")
    config_file.write_text('[runtime]\nlog_levle = "DEBUG"', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"\[runtime\]: unknown key log_levle; did you mean log_level"):
        load_section(ExampleService, "store")


def test_cli_3_a_variable_for_all_services_gives_way_to_the_services_own(
    config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIDEOTREE_RUNTIME_HOST", "0.0.0.0")
    assert load_section(ExampleService, "store").host == "0.0.0.0"
    monkeypatch.setenv("VIDEOTREE_STORE_HOST", "127.0.0.2")
    config = load_section(ExampleService, "store")
    assert (config.host, config.source_of("host")) == ("127.0.0.2", "VIDEOTREE_STORE_HOST")


def test_cli_3_a_section_built_directly_reads_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://elsewhere")
    monkeypatch.setenv("WIDTH", "3")
    assert Example().redis_url is None
    assert Example().width == 8
