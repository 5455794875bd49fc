"""SHA-256 checksums of the files in a folder of results, and JSON documents that contain their own checksum.

The checksums of Zarr's codecs detect changed bytes in a chunk. They do not detect a missing or misplaced chunk, or a
changed `zarr.json`; the checksums here do. The checksum of a document covers its path within the folder, so
swapped documents are detected.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...common.whole_files import whole_file

CHECKSUM = "checksum"


@dataclass(frozen=True)
class Damage:
    """A damaged file: changed, cut, missing or misplaced since it was written.

    Attributes
    ----------
    file : str
        Path within the folder of results.
    reason : str
    chunk : int, optional
        Chunk whose results the file holds; None for the description of the results.
    """

    file: str
    reason: str
    chunk: int | None = None

    def __str__(self) -> str:
        return f"{self.file}: {self.reason}"


class DamagedFile(Exception):
    """The reason why a file is damaged."""


def read_whole(path: Path) -> bytes:
    """Read a file; raises DamagedFile if that is impossible."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise DamagedFile("the file is missing") from None
    except OSError as error:
        raise DamagedFile(f"the file cannot be read ({error.strerror or error})") from None


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(read_whole(path)).hexdigest()


def read_verified(folder: Path, name: str) -> dict[str, Any]:
    """Read a JSON document; raises DamagedFile if its checksum does not match."""
    document = read_json(folder / name)
    if _checksum_owner(document).get(CHECKSUM) != _checksum(document, name):
        raise DamagedFile("the checksum does not match the contents")
    return document


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object without a check of its checksum; raises DamagedFile if the file is not a JSON object."""
    try:
        document = json.loads(read_whole(path).decode("utf-8"))
    except (ValueError, RecursionError):
        raise DamagedFile("the file is not valid JSON") from None
    if not isinstance(document, dict) or not isinstance(document.get("attributes", {}), dict):
        raise DamagedFile("the file does not contain the JSON object that rbchain wrote")
    return document


def write_with_checksum(folder: Path, name: str, document: dict[str, Any]) -> None:
    """Write a JSON document with its checksum, atomically: a reader finds the old file or the new one."""
    _checksum_owner(document)[CHECKSUM] = _checksum(document, name)
    with whole_file(folder / name) as partial:
        partial.write_text(json.dumps(document, indent=2), encoding="utf-8")


def _checksum_owner(document: dict[str, Any]) -> dict[str, Any]:
    """Return the object that contains the checksum: the attributes of a `zarr.json`, else the document itself."""
    return document.get("attributes", document)


def _checksum(document: dict[str, Any], name: str) -> str:
    """Return the checksum of the name of a document and of its contents without the checksum."""
    plain = {key: value for key, value in document.items() if key != CHECKSUM}
    if "attributes" in plain:
        plain["attributes"] = {key: value for key, value in plain["attributes"].items() if key != CHECKSUM}
    return hashlib.sha256(json.dumps([name, plain], sort_keys=True).encode()).hexdigest()
