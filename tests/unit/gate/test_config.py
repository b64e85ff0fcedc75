import json

import pytest

from services.gate.config import GateConfig
from services.gate.domain.evidence import Mixture
from services.gate.main import main
from services.runtime.config import ConfigError, load_section


def test_gat_2_the_defaults_are_the_documented_ones(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.chdir(str(tmp_path))
    config = load_section(GateConfig, "gate")
    parameters, options = config.gate_parameters(), config.round_options()
    assert (config.port, config.metrics_port) == (50053, 9053)
    assert (parameters.e_confirm, parameters.e_provisional, parameters.w_net_min) == (20, 3, 2)
    assert (parameters.delta_min, parameters.lambda_dir, parameters.p1) == (0.02, -0.642, 0.7)
    assert (options.concurrency, options.base_salt, options.max_speculation) == (32, "gate-base", None)
    assert (options.guard.max_fault_share, options.guard.min_questions) == (0.1, 10)
    assert (config.probation_parameters().e_rollback, config.probation_parameters().probation_units) == (10, 30)


def test_gat_5_the_base_salt_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIDEOTREE_GATE_BASE_SALT", "none")
    monkeypatch.setenv("VIDEOTREE_GATE_MIXTURE", "one_sided")
    config = load_section(GateConfig, "gate")
    assert config.round_options().base_salt is None
    assert config.gate_parameters().mixture is Mixture.ONE_SIDED


@pytest.mark.parametrize(
    ("key", "value"),
    [("E_CONFIRM", "2"), ("P1", "nan"), ("GUARD_ERR", "0"), ("CONCURRENCY", "0"), ("N_MAX", "0"), ("E_ROLLBACK", "1")],
)
def test_a_value_that_no_gate_can_run_with_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, key: str, value: str
) -> None:
    monkeypatch.setenv(f"VIDEOTREE_GATE_{key}", value)
    with pytest.raises(ConfigError, match="must be"):
        load_section(GateConfig, "gate")


def test_cli_5_show_config_names_every_value_and_its_source(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VIDEOTREE_GATE_E_CONFIRM", "40")
    monkeypatch.setattr("sys.argv", ["gate", "--show-config"])
    assert main() == 0
    shown = {row["key"]: row for row in json.loads(capsys.readouterr().out)}
    assert (shown["e_confirm"]["value"], shown["e_confirm"]["source"]) == (40, "VIDEOTREE_GATE_E_CONFIRM")
    assert shown["base_salt"]["source"] == "default"
