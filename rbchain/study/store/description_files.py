"""The description of a study from Python as files next to its results, so that the study can be read again.

The files have the formats of a study and of a model that users write. A study with Python functions cannot be written.
"""

from __future__ import annotations

import json
import shutil
import warnings
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from ...acting.inputs import Input
from ...acting.numeric_fields import Declared
from ...acting.random_signals import RandomSignal
from ...acting.sampled import Sampled
from ...acting.signals import Signal
from ...common.real_arrays import excerpt
from ...compiling.origins import name_of
from ...errors import RbchainError, StudyError
from ...model.pose import Pose
from ..describe.description import read_description
from ..describe.designs import GivenValues
from ..describe.identity import differences
from ..describe.numbers import Described
from ..plan.plan import Plan, plan_of
from .layout import DESCRIPTION, identity_of

STUDY, MODEL = "study.toml", "model.toml"
SIMPLE = bool, int, float, str, tuple  # values whose default is left out
LARGEST_DESIGN = 100_000  # numbers of an array; a file with more of them takes seconds to read


class _CannotBeWritten(ValueError):
    """A part of a study that a file cannot contain."""


def write_description(folder: Path, plan: Plan) -> str:
    """Write the files of a plan into a folder of its results, if they are missing.

    Returns an empty string, or the reason if files cannot describe the study exactly.
    """
    if study_file(folder).is_file():
        return ""
    import tomli_w

    from ...io.write_native import toml_of

    unfinished = folder / f"{DESCRIPTION}.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        study, model = tomli_w.dumps(_table_of_plan(plan)), toml_of(plan.nominal.model)
        unfinished.mkdir()
        (unfinished / MODEL).write_text(model, encoding="utf-8")
        (unfinished / STUDY).write_text(study, encoding="utf-8")
        _check_is_same(plan, unfinished)
    except (_CannotBeWritten, RbchainError) as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        return str(error)
    (folder / DESCRIPTION).mkdir(exist_ok=True)
    for name in (MODEL, STUDY):  # the file of the study last, because it marks both as complete
        (unfinished / name).replace(folder / DESCRIPTION / name)
    unfinished.rmdir()
    return ""


def study_file(folder: str | Path) -> Path:
    """Return the path of the file of a study from Python in the folder of its results."""
    return Path(folder) / DESCRIPTION / STUDY


def _check_is_same(plan: Plan, folder: Path) -> None:
    """Raise an error unless the files in a folder describe the study of a plan."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the model; they appeared when it was made
        again = plan_of(read_description(folder / STUDY), folder)
    written, own = (json.dumps(x.as_json()) for x in (again, plan))
    if identity_of(written) != identity_of(own):
        changed = differences(json.loads(own), json.loads(written))
        raise StudyError(f"a file would change the study: {'; '.join(changed[:2])}")


def _table_of_plan(plan: Plan) -> dict[str, Any]:
    """Return the keys of the file of a study."""
    description = plan.description
    given = {name: getattr(description, name) for name in type(description).model_fields}
    if isinstance(description.design, GivenValues):
        assert plan.table is not None
        if plan.table.size > LARGEST_DESIGN:
            raise _CannotBeWritten(f"design has {plan.table.size:,} numbers, which are too many for a text file")
        given["design"] = {"type": description.design.type, "values": plan.table}
    elif plan.table is not None:
        raise _CannotBeWritten("its numbers come from a table")
    return _written("", given | {"model": MODEL})


def _written(place: str, value: Any) -> Any:
    """Return a value as TOML has it. `place` names it in errors."""
    if isinstance(value, np.ndarray | np.generic):
        return _written(place, value.tolist())
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_written(f"{place}[{i}]", item) for i, item in enumerate(value)]
    if isinstance(value, dict):
        items = {str(key): item for key, item in value.items() if item is not None}
    elif isinstance(value, Described):
        defaults = {name: field.default for name, field in type(value).model_fields.items()}
        items = {name: getattr(value, name) for name in defaults if not _is_default(value, name, defaults[name])}
    elif isinstance(value, Signal | RandomSignal | Input):
        items = _items_of_signal(place, value)
    elif isinstance(value, Sampled):
        clock = {field.name: getattr(value, field.name) for field in fields(value) if field.name != "controller"}
        return _written(place, value.controller) | {"sampled": _written(f"{place}.sampled", clock)}
    elif isinstance(value, Pose):
        items = {"translation": value.translation, "rotation": value.rotation}
    elif isinstance(value, Declared):
        names = [field.name for field in fields(value) if not _is_default(value, field.name, field.default)]
        items = {"type": type(value).__name__} | {name: getattr(value, name) for name in names}
    else:
        what = f"is the Python function {name_of(value)}" if hasattr(value, "__qualname__") else f"is {excerpt(value)}"
        raise _CannotBeWritten(f"{place} {what}, which a file cannot contain")
    return {key: _written(f"{place}.{key}".lstrip("."), item) for key, item in items.items() if item is not None}


def _items_of_signal(place: str, value: Signal | RandomSignal | Input) -> dict[str, Any]:
    """Return the keys of a signal."""
    if isinstance(value, RandomSignal):
        return {"type": value.kind, **value.parameters, "seed": value.seed, "channel": value.channel}
    if isinstance(value, Input):
        return {"type": "input", "name": value.name, "value": value.value}
    if value.inputs:
        raise _CannotBeWritten(f"{place} is a sum or a multiple of inputs, which a file cannot contain")
    items: dict[str, Any] = {"type": "pieces", "breaks": value.breaks, "coefficients": value.coefficients}
    items |= {"end": value.end} if np.isfinite(value.end) else {}
    return items | ({"waves": value.waves} if value.waves.size else {})


def _is_default(value: Any, name: str, default: Any) -> bool:
    """Whether a field other than the type has its default, so that a file can omit it."""
    own = getattr(value, name)
    return name != "type" and type(own) is type(default) and isinstance(own, SIMPLE) and own == default
