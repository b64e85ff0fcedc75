"""What holds for any input (QUA-12, QUA-13, STO-3, STO-7, STO-13)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.store.adapters import database_dialect, schema
from services.store.adapters.sql_transaction import SqlTransaction
from services.store.domain import errors, names, page_tokens, step_keys
from services.store.domain.fingerprints import canonical_json, readable_json
from services.store.domain.frozen_pools import POOL_NAMES, Pools, PoolUnit, parse_pools
from services.store.domain.rows import checked_rows
from services.store.domain.version_content import checked_file_name, next_files, normalised_text, unified_diff
from services.store.rpc.row_codec import to_row
from services.store.use_cases.ports import Query
from tests.builders.store_requests import prediction
from tests.fakes.in_memory_store import InMemoryTransaction

BOUNDED = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SLOW = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])

_TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=60)
_RUN_IDS = st.text(st.sampled_from("ab_e0s1%gate_GATE\\é"), min_size=1, max_size=14)
_FILES = st.dictionaries(st.from_regex(r"[a-z0-9][a-z0-9_-]{0,5}\.md", fullmatch=True), _TEXTS, max_size=4)


@BOUNDED
@given(_TEXTS)
def test_qua_14_a_component_never_leaves_its_folder(value: str) -> None:
    try:
        names.component(value, "f")
    except errors.InvalidName:
        return
    root = Path("/data/root")
    assert (root / value).resolve() == root / value
    assert (root / value).parent == root


@BOUNDED
@given(st.text(max_size=30))
def test_qua_14_a_version_file_name_is_one_lower_case_component_or_refused(value: str) -> None:
    try:
        checked_file_name(value, "f")
    except errors.InvalidVersionFile:
        pass
    else:
        assert re.fullmatch(r"[a-z0-9][a-z0-9._-]*\.md", value)
        assert value == value.casefold()


@BOUNDED
@given(st.binary(max_size=200))
def test_qua_13_any_bytes_become_clean_text_or_a_clear_refusal(content: bytes) -> None:
    try:
        text = normalised_text("a.md", content, "f")
    except errors.InvalidVersionFile:
        return
    assert "\r" not in text
    assert "\0" not in text
    assert normalised_text("a.md", text, "f") == text


@BOUNDED
@given(_FILES, _FILES, st.data())
def test_sto_3_the_next_version_is_the_parent_overridden_and_pruned(
    parent: dict[str, str], overrides: dict[str, str], data: st.DataObject
) -> None:
    parent = {name: text.replace("\0", "") for name, text in parent.items()}
    removable = sorted(set(parent) - set(overrides))
    removed = data.draw(st.lists(st.sampled_from(removable), unique=True)) if removable else []
    try:
        files = next_files(parent, overrides, removed)
    except errors.InvalidRequest:
        assert any("\0" in text for text in overrides.values()) or set(parent) - set(removed) == set() == set(overrides)
        return
    assert set(files) == (set(parent) | set(overrides)) - set(removed)
    for name, text in files.items():
        source = overrides.get(name)
        assert text == (parent[name] if source is None else source.replace("\r\n", "\n").replace("\r", "\n"))


def _patched(old: list[str], diff: str) -> list[str]:
    """Applies a unified diff of one file, hunk by hunk."""
    lines = re.findall(r"[^\n]*\n", diff)[2:]
    result: list[str] = []
    position = 0
    for index, line in enumerate(lines):
        bare = index + 1 < len(lines) and lines[index + 1].startswith("\\")
        text = line[1:].removesuffix("\n") if bare else line[1:]
        if line.startswith("@@"):
            start, count = re.match(r"@@ -(\d+)(?:,(\d+))?", line).groups()  # type: ignore[union-attr]
            begin = int(start) - (count != "0")
            result += old[position:begin]
            position = begin
        elif line[0] in " -":
            assert old[position] == text
            position += 1
            result += [text] if line[0] == " " else []
        elif line[0] == "+":
            result.append(text)
    return result + old[position:]


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


@BOUNDED
@given(
    st.lists(st.sampled_from(["a", "b", "c\n", "\n", "d\u2028", "\x0b"]), max_size=12).map("".join),
    st.lists(st.sampled_from(["a", "b", "c\n", "\n", "d\u2028", "\x0b"]), max_size=12).map("".join),
)
def test_sto_3_applying_a_diff_to_the_older_text_gives_the_newer(old: str, new: str) -> None:
    diff = unified_diff("v1", {"a.md": old}, "v2", {"a.md": new})
    if old == new:
        assert diff == ""
    else:
        assert "".join(_patched(_lines(old), diff)) == new


@BOUNDED
@given(st.lists(st.one_of(st.text(max_size=20), st.integers(0, 2**40)), min_size=1, max_size=4), st.text(max_size=9))
def test_sto_13_a_token_comes_back_as_the_key_it_was_made_of(key: list[str | int], kind: str) -> None:
    mark = page_tokens.query_mark(kind, {})
    types = tuple(type(part) for part in key)
    assert page_tokens.decode(mark, page_tokens.encode(mark, key), types) == tuple(key)


@BOUNDED
@given(st.text(max_size=60))
def test_qua_13_a_foreign_token_is_refused_and_never_a_crash(token: str) -> None:
    try:
        assert page_tokens.decode("mark", token, (str,)) is None
        assert token == ""
    except errors.InvalidPageToken:
        pass


@BOUNDED
@given(st.dictionaries(st.sampled_from(["run_id", "question_id", "steps_json", "reasoning", "stop_reason"]), _TEXTS))
def test_qua_13_a_row_is_storable_or_its_field_is_named(fields: dict[str, str]) -> None:
    row = {**to_row(prediction("r", "q")), **fields}
    named: str | None = None
    try:
        checked_rows("predictions", [row], "predictions")
    except errors.InvalidRequest as error:
        named = error.field
    if named is None:
        assert not any("\0" in value for value in fields.values())
        json.loads(row["steps_json"] or "null")
    else:
        assert named in {f"predictions[0].{name}" for name in fields}


@SLOW
@given(st.lists(_RUN_IDS, min_size=1, max_size=25, unique=True), _RUN_IDS, st.sampled_from([0, 1, 10]))
def test_sto_7_a_prefix_finds_exactly_what_python_finds(run_ids: list[str], base: str, step: int) -> None:
    run_ids += [step_keys.gate_run_prefix(base, 0, step) + tail for tail in ("", "x", "_s10")]
    run_ids += [step_keys.gate_run_prefix(base, 0, step * 10 + 1), base.swapcase() + "_e0_s1_gate_x"]
    prefix = step_keys.gate_run_prefix(base, 0, step)
    with TemporaryDirectory() as folder:
        engine = database_dialect.writing_engine(database_dialect.sqlite_url(Path(folder) / "a.db"))
        schema.upgrade(engine)
        memory = InMemoryTransaction({})
        with engine.begin() as connection:
            disk = SqlTransaction(connection)
            rows = [to_row(prediction(run_id, "q")) for run_id in dict.fromkeys(run_ids)]
            for transaction in (disk, memory):
                transaction.upsert("predictions", rows)
            gone = Query("predictions", starting_with={"run_id": prefix})
            shown = Query("predictions", not_containing={"run_id": "_gate_"})
            assert disk.find(gone) == memory.find(gone)
            assert disk.find(shown) == memory.find(shown)
            assert disk.count(gone) == sum(run_id.startswith(prefix) for run_id in dict.fromkeys(run_ids))
            assert disk.delete(gone) == memory.delete(gone)
            everything = Query("predictions")
            assert disk.find(everything) == memory.find(everything)
        engine.dispose()


@SLOW
@given(
    st.lists(st.tuples(st.sampled_from("abA_"), st.text("é_aZ~", min_size=1, max_size=3)), max_size=25),
    st.integers(1, 7),
    st.booleans(),
)
def test_sto_13_pages_join_to_the_whole_list(keys: list[tuple[str, str]], limit: int, one_run: bool) -> None:
    with TemporaryDirectory() as folder:
        engine = database_dialect.writing_engine(database_dialect.sqlite_url(Path(folder) / "a.db"))
        schema.upgrade(engine)
        with engine.begin() as connection:
            transaction = SqlTransaction(connection)
            transaction.upsert("predictions", [to_row(prediction(*key)) for key in keys])
            seen: list[tuple[str, str]] = []
            after: tuple[object, ...] | None = None
            more = True
            while more:
                query = Query("predictions", equal={"run_id": "a"} if one_run else {}, after=after)
                rows, more = transaction.page(query, limit, 10**6)
                seen += [(row["run_id"], row["question_id"]) for row in rows]
                after = seen[-1] if seen else None
            assert seen == sorted({key for key in keys if not one_run or key[0] == "a"})
        engine.dispose()


@BOUNDED
@given(
    st.lists(
        st.builds(
            PoolUnit,
            _TEXTS,
            _TEXTS,
            _TEXTS,
            st.lists(_TEXTS, max_size=2).map(tuple),
            st.sampled_from(POOL_NAMES),
        ),
        max_size=4,
    )
)
def test_sto_10_pools_come_back_from_their_file_with_the_same_fingerprint(units: list[PoolUnit]) -> None:
    pools = Pools("base", "sample", tuple(units))
    again = parse_pools(json.loads(pools.file_content()))
    assert (again, again.sha256) == (pools, pools.sha256)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=8,
)


@BOUNDED
@given(_JSON)
def test_both_renderings_of_json_say_the_same(value: object) -> None:
    assert json.loads(canonical_json(value)) == json.loads(readable_json(value)) == value


def test_not_a_number_is_no_json() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        readable_json({"a": float("nan")})
