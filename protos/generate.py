"""Generates the Python package `videotree` from the protos.

Usage: python protos/generate.py [OUT]

OUT (default `gen`) receives `videotree/**` with the message classes, the service stubs and their type stubs. What was
generated there before is removed first, so a deleted proto leaves nothing behind. The same inputs and the locked
versions of grpcio-tools and mypy-protobuf give the same bytes.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path

import grpc_tools
from grpc_tools import protoc

PROTO_ROOT = Path(__file__).resolve().parent
WELL_KNOWN = Path(grpc_tools.__file__).parent / "_proto"
PACKAGE = "videotree"
INIT_TEXT = '"""Generated from protos/; never edited by hand."""\n'


def generate(out: Path) -> int:
    """Writes the generated package into `out` and returns protoc's exit code (0 when all went well)."""
    protos = sorted(str(path.relative_to(PROTO_ROOT)) for path in (PROTO_ROOT / PACKAGE).rglob("*.proto"))
    if not protos:
        sys.stderr.write(f"no .proto file below {PROTO_ROOT / PACKAGE}\n")
        return 1
    shutil.rmtree(out / PACKAGE, ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)
    code = int(protoc.main(_arguments(out, protos)))
    if code == 0:
        _mark_as_typed_packages(out / PACKAGE)
    return code


def _arguments(out: Path, protos: list[str]) -> list[str]:
    return [
        "protoc",
        f"--proto_path={PROTO_ROOT}",
        f"--proto_path={WELL_KNOWN}",
        f"--python_out={out}",
        f"--grpc_python_out={out}",
        f"--mypy_out=quiet:{out}",
        f"--mypy_grpc_out=quiet,only_async:{out}",
        *protos,
    ]


def _mark_as_typed_packages(package: Path) -> None:
    (package / "py.typed").touch()
    for folder in (package, *(path for path in package.rglob("*") if path.is_dir())):
        (folder / "__init__.py").write_text(INIT_TEXT, encoding="utf-8")


if __name__ == "__main__":
    # protoc looks its plugins up on PATH; they stand beside this interpreter even when no environment is activated.
    os.environ["PATH"] = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])
    raise SystemExit(generate(Path(sys.argv[1] if len(sys.argv) > 1 else "gen")))
