"""A benchmark's record names what its figures rest on, on every machine that has what the project declares."""

import json
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

from bench import record

PROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]


def test_a_record_names_only_libraries_that_the_project_declares():
    declared = {Requirement(text).name for text in PROJECT["dependencies"]}
    assert set(record._LIBRARIES) <= declared
    assert set(record.versions()) == {"python", "sqlite", *record._LIBRARIES}


def test_what_a_benchmark_writes_is_what_is_read_and_shown(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "RESULTS", tmp_path / "results")
    short = record.Figure("rows", 250.0, "rows/s", "ratio >= 0.6", False, "bare loop:", 1000.0, 0.25)
    path = record.write("store", "how it\n was measured", [short, record.shown("calls", 3, "")])
    assert record.read("store") == [short, record.shown("calls", 3, "")]
    assert json.loads(path.read_text())["method"] == "how it was measured"
    assert "rows   250 rows/s  bare loop: 1,000  0.25   ratio >= 0.6  SHORT" in record.table(record.read("store"))
