"""INF-1, CLI-3: which endpoint serves which role."""

import pytest

from services.inference.config import InferenceConfig, endpoints_of
from services.inference.domain.chat import Role
from services.runtime.config import ConfigError, load_section

CHAT_ROLES = set(Role) - {Role.EMBED}


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for role in ["", *(f"{role.upper()}_" for role in Role)]:
        for part in ("BASE_URL", "MODEL", "API_KEY"):
            monkeypatch.delenv(f"{role}LLM_{part}", raising=False)
    monkeypatch.setenv("VIDEOTREE_CONFIG", "/dev/null")


def configured(monkeypatch, **variables):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return endpoints_of(load_section(InferenceConfig, "inference"))


def from_file(monkeypatch, tmp_path, text, **variables):
    (tmp_path / "videotree.toml").write_text(text)
    return configured(monkeypatch, VIDEOTREE_CONFIG=str(tmp_path / "videotree.toml"), **variables)


def test_inf_1_three_variables_serve_every_chat_role_with_one_endpoint(monkeypatch):
    by_role = configured(monkeypatch, LLM_BASE_URL="http://h:1/v1/", LLM_MODEL="m", LLM_API_KEY="secret-key")
    assert set(by_role) == CHAT_ROLES
    (endpoint,) = {id(e): e for endpoints in by_role.values() for e in endpoints}.values()
    assert (endpoint.base_url, endpoint.model, endpoint.api_key, endpoint.name) == (
        "http://h:1/v1",
        "m",
        "secret-key",
        "llm",
    )
    assert "secret-key" not in repr(endpoint)


def test_inf_1_a_roles_own_variables_override_and_inherit(monkeypatch):
    by_role = configured(
        monkeypatch, LLM_BASE_URL="http://h/v1", LLM_MODEL="m", LLM_API_KEY="key-general", JUDGE_LLM_MODEL="j",
        VISION_LLM_BASE_URL="https://v/v1", EMBED_LLM_MODEL="e",
    )  # fmt: skip
    found = {role: (es[0].base_url, es[0].model, es[0].api_key) for role, es in by_role.items()}
    assert found[Role.JUDGE] == ("http://h/v1", "j", "key-general")
    # A key goes only where it was meant to go.
    assert found[Role.VISION] == ("https://v/v1", "m", None)
    assert found[Role.EMBED] == ("http://h/v1", "e", "key-general")
    assert found[Role.AGENT] == found[Role.TOOL] == found[Role.EVOLVE] == ("http://h/v1", "m", "key-general")
    assert len({endpoint.name for es in by_role.values() for endpoint in es}) == 4


def test_inf_1_a_key_alone_overrides_a_role(monkeypatch):
    by_role = configured(
        monkeypatch, LLM_BASE_URL="http://h/v1", LLM_MODEL="m", LLM_API_KEY="aaaaaa", JUDGE_LLM_API_KEY="bbbbbb"
    )
    assert (by_role[Role.JUDGE][0].api_key, by_role[Role.AGENT][0].api_key) == ("bbbbbb", "aaaaaa")


FILE = """
[[inference.endpoints]]
name = "big"
roles = ["agent", "judge"]
base_url = "http://big/v1"
model = "large"
api_key_env = "BIG_KEY"
concurrency_limit = 7
first_token_timeout_seconds = 9
parameters = { temperature = 0.7 }
[[inference.endpoints]]
name = "spare"
roles = ["agent"]
base_url = "http://spare/v1"
model = "small"
"""


def test_inf_1_the_file_lists_several_endpoints_in_order_and_variables_of_a_role_win(monkeypatch, tmp_path):
    variables = {"BIG_KEY": "big-secret", "LLM_BASE_URL": "http://h/v1", "LLM_MODEL": "m"}
    by_role = from_file(monkeypatch, tmp_path, FILE, **variables, JUDGE_LLM_MODEL="j")
    assert [e.name for e in by_role[Role.AGENT]] == ["big", "spare"]
    big = by_role[Role.AGENT][0]
    assert (big.api_key, big.concurrency_limit, big.timeouts.first_token, big.parameters) == (
        "big-secret", 7, 9, {"temperature": 0.7},
    )  # fmt: skip
    assert by_role[Role.JUDGE][0].model == "j"
    assert by_role[Role.TOOL][0].name == "llm"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (FILE, "BIG_KEY"),
        (FILE.replace("spare", "big").replace('api_key_env = "BIG_KEY"', ""), "used twice"),
        (FILE.replace('"judge"', '"jury"'), "roles"),
        (FILE.replace("http://big/v1", "ftp://big"), "base_url"),
        (FILE.replace("http://big/v1", "http://user:pw@big/v1"), "LLM_API_KEY"),
        (FILE.replace("concurrency_limit = 7", "concurrency_limit = 0"), "concurrency_limit"),
        (FILE.replace("first_token_timeout_seconds = 9", "first_token_timeout_seconds = inf"), "first_token"),
        (FILE.replace("first_token_timeout_seconds = 9", "fist_token = 9"), "fist_token"),
        (FILE.replace("temperature = 0.7", "stream = false"), "stream"),
        (FILE + '[inference]\nunheard_of = 1\n', "unheard_of"),
    ],
)  # fmt: skip
def test_cli_3_a_wrong_value_names_its_key(monkeypatch, tmp_path, text, message):
    if message == "unheard_of":
        text = "[inference]\nunheard_of = 1\n" + FILE
    with pytest.raises(ConfigError, match=message):
        from_file(monkeypatch, tmp_path, text)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"LLM_BASE_URL": "http://h/v1"}, "LLM_MODEL"),
        ({"LLM_MODEL": "m"}, "LLM_BASE_URL"),
        ({"JUDGE_LLM_MODEL": "m"}, "JUDGE_LLM_BASE_URL"),
        ({"LLM_BASE_URL": "localhost:8000", "LLM_MODEL": "m"}, "LLM_BASE_URL"),
    ],
)
def test_inf_1_what_is_missing_is_named(monkeypatch, variables, message):
    with pytest.raises(ConfigError, match=message):
        configured(monkeypatch, **variables)


def test_inf_1_nothing_set_serves_no_role(monkeypatch):
    assert configured(monkeypatch) == {}


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "schlüssel", "tab\tkey"])
def test_qua_14_a_key_that_no_header_can_carry_is_refused_and_not_shown(monkeypatch, key):
    with pytest.raises(ConfigError, match="LLM_API_KEY") as caught:
        configured(monkeypatch, LLM_BASE_URL="http://h/v1", LLM_MODEL="m", LLM_API_KEY=key)
    assert key not in str(caught.value)
