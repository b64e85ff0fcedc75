"""Looking for planted secrets in everything that was written, in every form in which one may be written."""

from __future__ import annotations

import base64
import random
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

BEGINNING_CHARS = 14
"""How much of a secret's beginning is a find: a text that was cut short may end inside it."""
_CONTROL_BYTES = 200_000


def forms_of(secret: str) -> Mapping[str, bytes]:
    """The secret as it is, its beginning, and in the encodings that headers, URLs and JSON give it."""
    raw = secret.encode()
    shifted = {
        f"base64, {offset} bytes into a group": base64.b64encode(b"\0" * offset + raw)[4 if offset else 0 :].rstrip(
            b"="
        )
        for offset in range(3)
    }
    # The last characters of an encoding, and the first of a shifted one, also depend on what stands beside the secret.
    inner = {name: text[:-1] for name, text in shifted.items()}
    return {
        "raw": raw,
        "its beginning": raw[:BEGINNING_CHARS],
        **inner,
        **{f"URL-safe {name}": text.translate(bytes.maketrans(b"+/", b"-_")) for name, text in inner.items()},
        "percent-encoded": quote(secret, safe="").encode(),
        "hexadecimal": raw.hex().encode(),
        "JSON with escaped slashes": secret.replace("/", "\\/").encode(),
        "UTF-16": secret.encode("utf-16-le"),
    }


@dataclass(slots=True)
class Search:
    """What was looked through, and what was found; `allowed` are the files in which the secrets were planted."""

    secrets: Mapping[str, str]
    allowed: Collection[str] = ()
    places: int = 0
    size_bytes: int = 0
    rows: int = 0
    found: list[str] = field(default_factory=list)

    def text(self, where: str, content: str | bytes) -> None:
        """Looks through one text."""
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        self.places += 1
        self.size_bytes += len(data)
        for name, secret in self.secrets.items():
            self.found += [f"{name} ({form}) in {where}" for form, wanted in forms_of(secret).items() if wanted in data]

    def folder(self, root: Path) -> None:
        """Looks through every byte of every file below a folder, and every value of every row of its databases."""
        for path in sorted(root.rglob("*")):
            where = str(path.relative_to(root))
            # A name is written too.
            self.found += [f"{name} in the name {where}" for name, secret in self.secrets.items() if secret in where]
            if path.is_symlink() or not path.is_file() or path.name in self.allowed:
                continue
            content = path.read_bytes()
            self.text(where, content)
            if content.startswith(b"SQLite format 3\0"):
                self._database(path, where)

    def _database(self, path: Path, where: str) -> None:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            for (table,) in tables:
                for row in _values(connection.execute(f'SELECT * FROM "{table}"')):  # a name out of the database
                    self.rows += 1
                    self.text(f"{where}, table {table}", row)


def _values(rows: Iterable[tuple[object, ...]]) -> Iterator[bytes]:
    for row in rows:
        yield b"\n".join(value if isinstance(value, bytes) else str(value).encode() for value in row)


def controls_missed(secrets: Mapping[str, str], folder: Path) -> tuple[int, list[str]]:
    """How often a secret was hidden to try the search, and which of them it did not find.

    Each form stands once in the middle of random bytes in a file, and once in a row of a database.
    """
    folder.mkdir(parents=True)
    rng, tried, missed = random.Random(1), 0, []
    for name, secret in secrets.items():
        for number, (form, content) in enumerate(forms_of(secret).items()):
            for kind in ("file", "row"):
                place = folder / f"{name}-{number}-{kind}"
                place.mkdir()
                _hide(place, kind, content, rng)
                search = Search({name: secret})
                search.folder(place)
                tried += 1
                if not any(found.startswith(f"{name} ({form}) in ") for found in search.found):
                    missed.append(f"{name} ({form}) in a {kind}")
        for offset in range(3):
            place = folder / f"{name}-encoded-{offset}"
            place.mkdir()
            around = base64.b64encode(rng.randbytes(30 + offset) + secret.encode() + rng.randbytes(20))
            _hide(place, "file", around, rng)
            search = Search({name: secret})
            search.folder(place)
            tried += 1
            missed += [] if search.found else [f"{name} in base64 of a longer text, {offset} bytes into a group"]
    return tried, missed


def _hide(place: Path, kind: str, content: bytes, rng: random.Random) -> None:
    if kind == "file":
        (place / "file").write_bytes(rng.randbytes(_CONTROL_BYTES) + content + rng.randbytes(_CONTROL_BYTES))
        return
    with closing(sqlite3.connect(place / "rows.db")) as connection, connection:
        connection.execute("CREATE TABLE t (a, b)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(number, "x" * 100) for number in range(50)])
        connection.execute("INSERT INTO t VALUES (?, ?)", (1, b"before " + content + b" after"))
