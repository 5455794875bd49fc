"""Checksums of the files of a folder of results, and the JSON documents that carry their own.

Zarr's codecs detect changed bytes in a chunk, but neither a missing chunk, nor one of another place, nor any change of
`zarr.json`. The SHA-256 sums here do. A document's sum includes its path within the folder, so that two documents
cannot change places.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHECKSUM = "checksum"


@dataclass(frozen=True)
class Damage:
    """A file that is not what was written.

    Attributes
    ----------
    file : str
        Its path within the folder of results.
    reason : str
    chunk : int, optional
        Which samples the file holds results of; None for the description of the results.
    """

    file: str
    reason: str
    chunk: int | None = None

    def __str__(self) -> str:
        return f"{self.file}: {self.reason}"


class DamagedFile(Exception):
    """A file that cannot be relied on; its text is the reason."""


def read_whole(path: Path) -> bytes:
    """The bytes of a file; DamagedFile if there are none to be had."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise DamagedFile("the file is missing") from None
    except OSError as error:
        raise DamagedFile(f"the file cannot be read ({error.strerror or error})") from None


def digest_of(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(read_whole(path)).hexdigest()


def read_sealed(folder: Path, name: str) -> dict[str, Any]:
    """A JSON document that is as it was written; DamagedFile otherwise."""
    document = read_json(folder / name)
    if _holder(document).get(CHECKSUM) != _sum(document, name):
        raise DamagedFile("the checksum does not match the contents")
    return document


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object, whatever it says; DamagedFile if the file has none."""
    try:
        document = json.loads(read_whole(path).decode("utf-8"))
    except (ValueError, RecursionError):
        raise DamagedFile("the file is not valid JSON") from None
    if not isinstance(document, dict) or not isinstance(document.get("attributes", {}), dict):
        raise DamagedFile("the file is not the JSON object that was written")
    return document


def write_sealed(folder: Path, name: str, document: dict[str, Any]) -> None:
    """Write a JSON document with its checksum, in one step: a reader finds the old file or the new one."""
    _holder(document)[CHECKSUM] = _sum(document, name)
    partial = folder / (name.replace("/", ".") + ".partial")
    partial.write_text(json.dumps(document, indent=2), encoding="utf-8")
    partial.replace(folder / name)


def _holder(document: dict[str, Any]) -> dict[str, Any]:
    """Where the checksum is: with the attributes in a `zarr.json`, beside the rest in any other document."""
    return document.get("attributes", document)


def _sum(document: dict[str, Any], name: str) -> str:
    """The checksum of everything in a document but the checksum itself, and of its place."""
    plain = {key: value for key, value in document.items() if key != CHECKSUM}
    if "attributes" in plain:
        plain["attributes"] = {key: value for key, value in plain["attributes"].items() if key != CHECKSUM}
    return hashlib.sha256(json.dumps([name, plain], sort_keys=True).encode()).hexdigest()
