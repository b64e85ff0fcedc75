"""Downloads the locked wheels for the Python of an image, whatever Python this host has.

Usage: python deploy/download_wheels.py IMAGE DESTINATION

The image is asked for its version, platform and C library; markers of requirements.lock are settled for these.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from packaging.requirements import Requirement

LOCK = Path(__file__).resolve().parents[1] / "requirements.lock"
_OLDEST_GLIBC_MINOR = 17  # manylinux2014, the oldest that today's wheels are built for
_QUESTION = """
import json, os, platform, sys
print(json.dumps({
    "implementation_name": sys.implementation.name, "os_name": os.name, "platform_machine": platform.machine(),
    "platform_python_implementation": platform.python_implementation(), "platform_system": platform.system(),
    "python_full_version": platform.python_version(), "python_version": "%d.%d" % sys.version_info[:2],
    "sys_platform": sys.platform, "glibc": platform.libc_ver()[1],
}))
"""


def target_of(image: str) -> dict[str, str]:
    """The marker environment of the image's Python, and its C library's version as `glibc`."""
    command = ["docker", "run", "--rm", "--network", "none", "--entrypoint", "python3", image, "-c", _QUESTION]
    answer: dict[str, str] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return answer


def settled(lock: str, target: dict[str, str]) -> str:
    """The lock's requirements that hold for `target`, with their hashes and without markers."""
    kept = []
    for block in lock.replace("\\\n", " ").splitlines():
        text, *hashes = block.split(" --hash=")
        if not text.strip() or text.startswith("#"):
            continue
        requirement = Requirement(text.strip())
        if requirement.marker is None or requirement.marker.evaluate(target):
            requirement.marker = None
            kept.append(" --hash=".join([str(requirement), *(each.strip() for each in hashes)]))
    return "\n".join(kept) + "\n"


def platform_tags(target: dict[str, str]) -> list[str]:
    """The manylinux tags that the image's C library can load, newest first."""
    newest = int(target["glibc"].split(".")[1])
    machine = target["platform_machine"]
    tags = [f"manylinux_2_{minor}_{machine}" for minor in range(newest, _OLDEST_GLIBC_MINOR - 1, -1)]
    return [*tags, f"manylinux2014_{machine}"]


def download(image: str, destination: Path) -> None:
    """Fills `destination` with the wheels; raises CalledProcessError when one can't be had."""
    target = target_of(image)
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as requirements:
        requirements.write(settled(LOCK.read_text(encoding="utf-8"), target))
        requirements.flush()
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--only-binary", ":all:", "--require-hashes", "--implementation", "cp"]
        command += ["--python-version", target["python_version"]]
        command += [part for tag in platform_tags(target) for part in ("--platform", tag)]
        subprocess.run([*command, "--requirement", requirements.name, "--dest", str(destination)], check=True)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.stderr.write("usage: python deploy/download_wheels.py IMAGE DESTINATION\n")
        raise SystemExit(2)
    download(sys.argv[1], Path(sys.argv[2]))
