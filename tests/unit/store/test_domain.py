"""The store's pure rules."""

from __future__ import annotations

import json
import random

import pytest

from services.store.domain import errors, frozen_pools, names, page_tokens, step_keys
from services.store.domain.baseline import first_per_question
from services.store.domain.estimates import observed
from services.store.domain.fingerprints import canonical_json, readable_json, require_same
from services.store.domain.frozen_pools import Pools, PoolUnit
from services.store.domain.manifest import BestEntry, Manifest, parse_manifest, with_best, with_current, with_run
from services.store.domain.version_content import content_sha256, normalised_text, unified_diff


def test_sto_11_the_first_row_of_each_question_is_kept_902_rows_for_900_questions() -> None:
    rows = [{"question_id": f"q{number}", "prediction": "first"} for number in range(900)]
    rows[500:500] = [{"question_id": "q3", "prediction": "again"}, {"question_id": "q499", "prediction": "again"}]
    seen: set[str] = set()
    kept = [row for start in range(0, len(rows), 100) for row in first_per_question(rows[start : start + 100], seen)]
    assert len(rows) == 902
    assert [row["question_id"] for row in kept] == [f"q{number}" for number in range(900)]
    assert {row["prediction"] for row in kept} == {"first"}


def test_sto_7_a_steps_run_ids() -> None:
    assert step_keys.rollout_run_id("base", 0, 1) == "base_e0_s1"
    assert step_keys.gate_run_prefix("base", 0, 1) == "base_e0_s1_gate_"


def test_sto_4_an_etag_changes_with_every_change_and_only_then() -> None:
    manifest = Manifest("w", "2026-01-01T00:00:00.000000Z", {"skills": "v1", "prompts": "v1"})
    again = parse_manifest(json.loads(readable_json(manifest.document())))
    assert again.etag == manifest.etag
    entry = BestEntry("v1", "v1", 0.5, 0, "r")
    changed = [
        with_current(manifest, {"skills": "v2"}),
        with_best(manifest, {"hard": entry}),
        with_run(manifest, "r", "2026-01-01T00:00:00.000001Z"),
    ]
    assert len({manifest.etag, *(each.etag for each in changed)}) == 4
    assert all(parse_manifest(json.loads(readable_json(each.document()))) == each for each in changed)


def test_sto_10_a_splits_fingerprint_depends_on_its_content_alone() -> None:
    unit = PoolUnit("u", "T", "v", ("q",), "diag")
    pools = Pools("b", "d", (unit,))
    assert pools.sha256 == Pools("b", "d", (PoolUnit("u", "T", "v", ("q",), "diag"),)).sha256
    others = [
        Pools("c", "d", (unit,)),
        Pools("b", "e", (unit,)),
        Pools("b", "d", (PoolUnit("u", "T", "v", ("q",), "val"),)),
    ]
    assert len({pools.sha256, *(each.sha256 for each in others)}) == 4
    assert frozen_pools.parse_pools(json.loads(pools.file_content())) == pools


def test_sto_10_freezing_over_another_split_needs_force() -> None:
    assert not frozen_pools.require_freezable("", "new", force=False)
    assert not frozen_pools.require_freezable("same", "same", force=True)
    assert frozen_pools.require_freezable("old", "new", force=True)
    with pytest.raises(errors.PoolsAlreadyFrozen, match="--force"):
        frozen_pools.require_freezable("old", "new", force=False)


def test_sto_9_fingerprints_differ_by_value_by_missing_and_by_extra_key() -> None:
    require_same({"a": "1"}, {"a": "1"})
    with pytest.raises(errors.FingerprintMismatch) as caught:
        require_same({"a": "1", "b": "2", "c": "3"}, {"a": "9", "b": "2", "d": "4"})
    assert list(caught.value.metadata) == ["a", "c", "d"]


@pytest.mark.parametrize("value", ["a", "A-b_c.d", "-AbC", "_x", "0", "a" * 200])
def test_a_plain_component_is_accepted(value: str) -> None:
    assert names.component(value, "f") == value


@pytest.mark.parametrize("value", ["", ".", "..", "a..b", "a/b", "/a", "a\\b", "a\n", "a b", "é", "a" * 201, "a\0"])
def test_qua_14_anything_else_is_no_component(value: str) -> None:
    with pytest.raises(errors.InvalidName):
        names.component(value, "f")


def test_qua_14_lower_components_never_differ_by_case_only() -> None:
    with pytest.raises(errors.InvalidName):
        names.lower_component("Trial", "f")


def test_a_token_belongs_to_one_query() -> None:
    mark = page_tokens.query_mark("runs", {"a": 1})
    token = page_tokens.encode(mark, ["x", 3])
    assert page_tokens.decode(mark, token, (str, int)) == ("x", 3)
    assert page_tokens.decode(mark, "", (str, int)) is None
    for other in (page_tokens.query_mark("runs", {"a": 2}), page_tokens.query_mark("traces", {"a": 1})):
        with pytest.raises(errors.InvalidPageToken):
            page_tokens.decode(other, token, (str, int))
    with pytest.raises(errors.InvalidPageToken):
        page_tokens.decode(mark, token, (int, str))


def test_an_estimate_is_the_mean_of_its_observations_and_an_epoch_counts_once() -> None:
    rng = random.Random(3)
    draws = [rng.random() < 0.7 for _ in range(200)]
    row: dict[str, float] | None = None
    for epoch, draw in enumerate(draws):
        estimate, count, last = observed(row, draw, epoch)
        row = {"estimate": estimate, "observation_count": count, "last_epoch": last}
        assert observed(row, not draw, epoch) == (estimate, count, last)
    assert row is not None
    assert abs(row["estimate"] - sum(draws) / 200) < 1e-12


def test_sto_3_bytes_that_are_not_utf_8_are_refused_naming_the_place() -> None:
    with pytest.raises(errors.InvalidVersionFile, match="byte 2"):
        normalised_text("a.md", b"ab\xff", "f")


def test_sto_3_a_versions_hash_does_not_depend_on_the_order_of_its_files() -> None:
    assert content_sha256({"a": "1", "b": "2"}) == content_sha256({"b": "2", "a": "1"})
    assert content_sha256({"a": "1", "b": "2"}) != content_sha256({"a": "2", "b": "1"})


def test_sto_3_a_diff_shows_files_that_come_go_and_are_empty() -> None:
    assert unified_diff("v1", {"a.md": "x\n"}, "v2", {"b.md": ""}) == (
        "--- v1/a.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n--- /dev/null\n+++ v2/b.md\n"
    )


def test_canonical_json_refuses_what_json_can_not_say() -> None:
    assert canonical_json({"b": 1, "a": "é"}) == '{"a":"é","b":1}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json(float("nan"))
