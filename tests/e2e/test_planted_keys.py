"""QUA-14: keys planted in the environment and in files are nowhere to be seen after a whole small training.

`python -m bench.secrets` is the same with more names that lead out of the data root, and figures.
"""

from pathlib import Path

import pytest

from bench.planted import Search, controls_missed, forms_of
from bench.secrets import RUN, SECRETS, try_everything


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_qua_14_planted_keys_are_in_no_log_row_error_metric_or_report(tmp_path: Path) -> None:
    found = await try_everything(tmp_path, names=("../../escape",))
    assert found.all_broken == []
    assert found.echoed > 20
    assert found.search.rows > 1000
    assert {"report.html", "summary.json", "services.trainer.main.log", "services.inference.main.log", "exported",
            "backup.json", RUN} <= set(found.names)  # fmt: skip


def test_qua_14_every_form_of_a_planted_key_would_be_found(tmp_path: Path) -> None:
    tried, missed = controls_missed(SECRETS, tmp_path / "controls")
    assert missed == []
    assert tried == sum(2 * len(forms_of(secret)) + 3 for secret in SECRETS.values())


def test_qua_14_what_holds_no_key_is_no_find(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("calling with sk-[redacted] and token-pl")
    search = Search(SECRETS)
    search.folder(tmp_path)
    assert (search.found, search.places) == ([], 1)


def test_qua_14_a_key_in_the_name_of_a_file_is_a_find(tmp_path: Path) -> None:
    (tmp_path / "report-of-abcdef0123456789.html").touch()
    search = Search({"key": "abcdef0123456789"})
    search.folder(tmp_path)
    assert search.found == ["key in the name report-of-abcdef0123456789.html"]
