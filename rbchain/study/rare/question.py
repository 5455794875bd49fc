"""The folder of an analysis: it belongs to one question about one study."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...common.whole_files import whole_file
from ...errors import StudyError
from ..describe.identity import differences
from ..plan.plan import Plan
from ..store.store import locked
from .layout import FOLDER

QUESTION = "question.json"
#: Keys of a description on which the simulations do not depend.
UNUSED = ("name", "samples", "design", "stop_when", "outputs")
COMPARISON = re.compile(r"\s*(?P<measure>.*\S)\s*(?P<sign>[<>])(?P<equal>=?)\s*(?P<threshold>[^<>=]*\S)\s*")


@contextlib.contextmanager
def locked_folder(out: str | Path, plan: Plan, question: dict[str, Any]) -> Iterator[Path]:
    """Lock the folder of an analysis, and compare the question in it with this one.

    Raises
    ------
    StudyError
        If the folder belongs to another question or study, is in use, or cannot be written.
    """
    folder = Path(out)
    of_study = {key: value for key, value in plan.as_json().items() if key not in UNUSED}
    # through JSON, so that tuples equal the lists of the file
    asked = json.loads(json.dumps({"question": question, "study": of_study}))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder):
            file = folder / QUESTION
            if file.exists():
                _compare(file, asked)
            elif any(path.suffix not in ("", ".lock") for path in folder.iterdir()):
                raise StudyError(f"{folder} contains other files; expected a new folder, or one of this analysis")
            else:
                with whole_file(file) as partial:
                    partial.write_text(json.dumps(asked, indent=1), encoding="utf-8")
            yield folder
    except OSError as error:
        raise StudyError(
            f"{folder}: the simulations cannot be written into this folder ({error.strerror or error}); choose another "
            "folder"
        ) from error


def _compare(file: Path, asked: dict[str, Any]) -> None:
    try:
        stored = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        raise StudyError(f"{file} is damaged; delete the folder {file.parent}, or choose another one") from None
    found = differences(stored, asked)
    if found:
        raise StudyError(
            f"{file.parent} belongs to another analysis: {'; '.join(found[:3])}. Choose another folder, or delete it"
        )


def read_question(text: str) -> tuple[str, dict[str, float | str]]:
    """Return the measure and the argument `above` or `below` of a text such as "tool error > 5 mm".

    Examples
    --------
    >>> read_question("tool error > 5 mm")
    ('tool error', {'above': '5 mm'})
    >>> read_question("clearance < -1e-3")
    ('clearance', {'below': -0.001})
    """
    match = COMPARISON.fullmatch(text)
    if match is None or match["equal"]:
        raise StudyError(f"found {text!r}; expected a measure, > or <, and a threshold, such as 'tool error > 5 mm'")
    threshold: float | str = match["threshold"]
    with contextlib.suppress(ValueError):
        threshold = float(threshold)
    return match["measure"], {"above" if match["sign"] == ">" else "below": threshold}


def folder_of(results: Path, text: str, method: str) -> Path:
    """Return the folder of an analysis next to the results of its study.

    Examples
    --------
    >>> folder_of(Path("arm"), "tool error > 5 mm", "subset").as_posix()
    'arm/probability/tool error above 5 mm, subset'
    """
    words = re.sub(r"\s*([<>])\s*", lambda sign: " above " if sign[1] == ">" else " below ", text.strip())
    return results / FOLDER / f"{words.replace('/', ' per ')}, {method}"
