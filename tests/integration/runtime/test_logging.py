"""What a process writes to standard error."""

from __future__ import annotations

import json
import subprocess
import sys

PROGRAM = """
import logging
from services.runtime.logging import configure_logging
configure_logging("test", "json", "INFO")
library = logging.getLogger("library")
library.setLevel("DEBUG")
library.debug("a library's chatter")
library.info("a library's news")
"""


def test_a_librarys_own_level_lets_nothing_through_below_the_configured_one() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60)
    (line,) = done.stderr.splitlines()
    assert json.loads(line)["event"] == "a library's news"
