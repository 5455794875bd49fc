"""Files of trajectories: NumPy archives (.npz) with the arrays of a `Trajectory`, its model and its forces.

The entry `contents` is a JSON document in UTF-8. It names the format, contains the model in rbchain's TOML format, and
describes all attributes of the trajectory. The other entries are the arrays that the document names. The entry `sha256`
is the SHA-256 of all of them. The file contains no pickled objects, so reading it executes no code.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..acting.contacts import BODY_CONTACTS, ImpactRecord, StickingRecord
from ..acting.events import EventRecord
from ..acting.flatten import flatten_actions
from ..acting.friction_and_stops import DryFriction, HardStops
from ..acting.inputs import Input
from ..acting.signals import Signal, as_signal
from ..acting.wrenches import FORCES
from ..common.calls import with_present_names
from ..common.real_arrays import FLOAT64, excerpt
from ..common.whole_files import whole_file
from ..errors import ArgumentError, FileFormatError, RbchainError, Status
from ..facade.model import Model
from ..model.description import VARIABLE_FIELDS, Description
from ..model.pose import Pose
from ..simulate.trajectory import Trajectory
from .native import model_of_toml
from .write_native import toml_of

FORMAT = "rbchain motion 1"
CONTENTS, DIGEST = "contents", "sha256"
#: The classes of the objects in a trajectory.
CLASSES = {kind.__name__: kind for kind in (*FORCES, EventRecord, ImpactRecord, StickingRecord, Signal, Input, Pose)}
#: Fields of a trajectory that the file describes in another way than the other fields, or not at all.
SPECIAL = ("model", "exceptions", "dense_output", "_compute_tau_and_qdd", "_continuation")


def save_motion(motion: Trajectory, path: str | Path, tau_and_qdd: np.ndarray | None) -> None:
    """Write a trajectory: see `Trajectory.save`. `tau_and_qdd` are its actuator forces and accelerations, if known."""
    path = _checked_path(path)
    if not isinstance(motion.model, Model):
        raise ArgumentError("this trajectory has no model; only trajectories returned by simulate() can be saved")
    writer = _Writer(motion)
    names = [field.name for field in dataclasses.fields(Trajectory) if field.name not in SPECIAL]
    contents = {
        "format": FORMAT,
        "model": writer.model(motion.model),
        "fields": {name: writer.encoded(name.removeprefix("_"), getattr(motion, name)) for name in names},
        "exceptions": [[list(index), text] for index, text in motion.exceptions.items()],
        "tau_and_qdd": writer.encoded("tau_and_qdd", tau_and_qdd),
    }
    entries = {CONTENTS: np.frombuffer(json.dumps(contents).encode(), np.uint8), **writer.arrays}
    entries[DIGEST] = np.frombuffer(digest_of(entries), np.uint8)
    with whole_file(path) as partial, partial.open("wb") as file:
        np.savez(file, **entries)  # type: ignore[arg-type]


def load_motion(path: str | Path) -> Trajectory:
    """Read a trajectory that `Trajectory.save` has written.

    Parameters
    ----------
    path : str or Path
        A file that ends in `.npz`.

    Returns
    -------
    Trajectory
        The saved trajectory, unchanged, with its model and forces. `Trajectory.save` lists the data that are not
        stored.

    Raises
    ------
    FileFormatError
        If the file was not written by `Trajectory.save`, is damaged, or has a format of another version of rbchain.
    FileNotFoundError
        If the file does not exist.

    Examples
    --------
    >>> import rbchain as rb, numpy as np, tempfile, pathlib
    >>> motion = rb.Model.serial_chain(2).simulate(np.zeros((3, 2)), duration=0.1, save_at=5)
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "swing.npz"
    >>> motion.save(file)
    >>> again = rb.load_motion(file)
    >>> np.array_equal(again.q, motion.q), again.model.body_names
    (True, ('link1', 'link2'))
    """
    path = _checked_path(path)
    try:
        with path.open("rb") as file:  # NumPy would not close a damaged file
            archive = np.load(file, allow_pickle=False)
            entries = {name: archive[name] for name in getattr(archive, "files", ())}  # of an .npy file: none
    except FileNotFoundError:
        raise
    except Exception as error:  # zipfile and NumPy raise errors of a dozen classes for damaged files
        raise FileFormatError(f"{path}: the file is damaged or is not a NumPy archive: {error}") from None
    contents = _contents_of(path, entries)
    try:
        return _Reader(entries).motion(contents)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError, RbchainError) as error:
        raise FileFormatError(f"{path}: the contents do not describe a trajectory: {error}") from None


def _checked_path(path: str | Path) -> Path:
    path = Path(path)
    if path.suffix.lower() != ".npz":
        raise FileFormatError(f"{path}: the name ends in {path.suffix!r}; expected '.npz'")
    return path


def _contents_of(path: Path, entries: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return the JSON document of a file with these entries, once its format and its digest are checked."""
    missing = [name for name in (CONTENTS, DIGEST) if name not in entries]
    if missing:
        raise FileFormatError(
            f"{path}: the file has no entry {missing[0]!r}, but {excerpt(list(entries))}; expected a file that "
            "Trajectory.save has written"
        )
    try:
        contents = json.loads(entries[CONTENTS].tobytes())
        found = contents["format"]
    except (ValueError, KeyError, TypeError):
        raise FileFormatError(
            f"{path}: the entry {CONTENTS!r} does not state its format; the file is damaged"
        ) from None
    if found != FORMAT:
        raise FileFormatError(
            f"{path}: the format is {found!r}; expected {FORMAT!r}. Read the file with the version of rbchain that "
            "wrote it"
        )
    if entries[DIGEST].tobytes() != digest_of({name: x for name, x in entries.items() if name != DIGEST}):
        raise FileFormatError(f"{path}: the checksum does not match the contents; the file is damaged or was changed")
    return contents


def digest_of(entries: Mapping[str, np.ndarray]) -> bytes:
    """Return the SHA-256 of the names, types, shapes and values of arrays."""
    digest = hashlib.sha256()
    for name in sorted(entries):
        array = np.ascontiguousarray(entries[name])
        digest.update(f"{name} {array.dtype.str} {entries[name].shape} ".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.digest()


class _Writer:
    """Converts the attributes of a trajectory to JSON. `arrays` collects the arrays that the JSON names."""

    def __init__(self, motion: Trajectory) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.forces = motion.forces

    def model(self, model: Model) -> dict[str, Any]:
        """Describe a model: its nominal model as TOML, and the fields that differ from it as arrays."""
        nominal = model.nominal
        changed = {}
        for name in VARIABLE_FIELDS:
            own, other = getattr(model.description, name), getattr(nominal.description, name)
            if own.shape != other.shape or own.tobytes() != other.tobytes():
                changed[name] = self.encoded(f"model.{name}", own)
        return {"toml": toml_of(nominal), "varies": nominal is not model, "fields": changed}

    def encoded(self, place: str, value: Any) -> Any:
        """Return a value as JSON. `place` names its array, and the value in error messages."""
        if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biuf":
            self.arrays[place] = np.asarray(value)
            return {"array": place}
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, tuple | list):
            return [self.encoded(f"{place}.{i}", item) for i, item in enumerate(value)]
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return {"table": {key: self.encoded(f"{place}.{key}", item) for key, item in value.items()}}
        if hasattr(value, "c") and hasattr(value, "x"):  # a piecewise polynomial of SciPy
            value = as_signal(place, value)
        if type(value) not in CLASSES.values():
            raise ArgumentError(
                f"{place} is {excerpt(value)}, which a file of a trajectory cannot contain; expected numbers, text, or "
                f"an object of a class of {', '.join(CLASSES)}"
            )
        of_forces = [i for i, force in enumerate(self.forces) if force is value]
        if of_forces and not place.startswith("forces."):
            return {"force": of_forces[0]}
        names = [field.name for field in dataclasses.fields(value)]
        fields = {name: self.encoded(f"{place}.{name}", getattr(value, name)) for name in names}
        return {"kind": type(value).__name__, "fields": fields}


def _check(motion: Trajectory, tau_and_qdd: np.ndarray | None) -> None:
    """Raise a ValueError or an ArgumentError if the parts of a trajectory do not fit together.

    The checksum of a file finds accidental changes. A program that edits a file can write a new checksum.
    """
    model, batch, forces = motion.model, np.shape(motion.status), motion.forces
    if model.batch_shape not in ((), batch):
        raise ValueError(f"the model has batch shape {model.batch_shape}; expected () or the shape of status, {batch}")
    strangers = [force for force in forces if not isinstance(force, FORCES)]
    if strangers:
        raise ValueError(f"forces contains {excerpt(strangers[0])}; expected forces")
    _check_array("t", motion.t, "f", (np.size(motion.t),))
    if not np.isfinite(motion.t).all():
        raise ValueError(f"t is {excerpt(motion.t.tolist())}; expected finite numbers")
    flatten_actions(model, batch, float(motion.t.max(initial=0.0)), FLOAT64, ((), forces, ()))  # checks the forces
    _check_numbers(motion, tau_and_qdd)
    _check_records(motion)
    for index, text in motion.exceptions.items():
        inside = len(index) == len(batch) and all(0 <= i < size for i, size in zip(index, batch, strict=True))
        if not inside or not isinstance(text, str):
            raise ValueError(f"exceptions contains {index}: {excerpt(text)}; expected text for an index in {batch}")


def _check_numbers(motion: Trajectory, tau_and_qdd: np.ndarray | None) -> None:
    """Raise a ValueError if an array of a trajectory does not fit its model and batch."""
    nq, nv, batch = motion.model.nq, motion.model.nv, np.shape(motion.status)
    saved = (*batch, motion.t.size)
    contacts = sum(isinstance(force, BODY_CONTACTS) for force in motion.forces)
    for name, kind, shape in (
        ("status", "i", batch),
        ("q", "f", (*saved, nq)),
        ("qd", "f", (*saved, nv)),
        ("steps", "i", batch),
        ("rejections", "i", batch),
        ("evaluations", "i", batch),
        ("end_time", "f", batch),
        ("end_q", "f", (*batch, nq)),
        ("end_qd", "f", (*batch, nv)),
        ("is_stiff", "b", batch),
        ("dof_beyond_limits", "i", batch),
        ("oscillating_dof", "i", batch),
        ("contact_forces", "f", (*saved, contacts, 3)),
        ("contact_residual", "f", batch),
    ):
        _check_array(name, getattr(motion, name), kind, shape)
    unknown = np.setdiff1d(motion.status, list(Status))
    if unknown.size:
        raise ValueError(f"status contains {unknown[0]}; expected values of rbchain.Status, {[*map(int, Status)]}")
    if not isinstance(motion.contact_tolerance, float):
        raise ValueError(f"contact_tolerance is {excerpt(motion.contact_tolerance)}; expected a number")
    if tau_and_qdd is not None:
        _check_array("tau_and_qdd", tau_and_qdd, "f", (*saved, 2 * nv))
    if motion.has_energy_error:
        _check_array("energy_error", motion.energy_error, "f", saved)
    for name, derivatives in motion.derivatives.items():
        of_field = np.shape(derivatives)[len(saved) + 1 :]
        _check_array(f"derivatives[{name!r}]", derivatives, "f", (*saved, 2 * nv, *of_field))


def _check_records(motion: Trajectory) -> None:
    """Raise a ValueError if the records of events, impacts and sticking do not fit the batch or the forces."""
    batch = np.shape(motion.status)
    for i, record in enumerate(motion.events):
        _check_record(
            f"events[{i}]", record, EventRecord, {"t": (), "q": (motion.model.nq,), "qd": (motion.model.nv,)}, batch
        )
        for of, rows in (("derivatives_of_t", ()), ("derivatives_of_state", (2 * motion.model.nv,))):
            for name, x in getattr(record, of).items():
                first = (*np.shape(record.t), *rows)
                _check_array(f"events[{i}].{of}[{name!r}]", x, "f", (*first, *np.shape(x)[len(first) :]))
    for i, impacts in enumerate(motion.impacts):
        impulse = () if isinstance(getattr(impacts, "force", None), HardStops) else (3,)
        _check_record(f"impacts[{i}]", impacts, ImpactRecord, {"t": (), "impulse": impulse}, batch)
        _check_force(f"impacts[{i}]", impacts.force, (HardStops, *BODY_CONTACTS), motion.forces)
    for i, sticking in enumerate(motion.sticking):
        _check_record(f"sticking[{i}]", sticking, StickingRecord, {"start": (), "end": ()}, batch)
        _check_force(f"sticking[{i}]", sticking.force, (DryFriction, *BODY_CONTACTS), motion.forces)


def _check_force(what: str, force: Any, kinds: tuple[type, ...], forces: tuple[Any, ...]) -> None:
    """Raise a ValueError if a record does not belong to a force of these classes."""
    if not (isinstance(force, kinds) and any(force is other for other in forces)):
        names = " or ".join(kind.__name__ for kind in kinds)
        raise ValueError(f"{what} belongs to {excerpt(force)}; expected {names} in forces")


def _check_record(
    what: str,
    record: Any,
    kind: type[EventRecord | ImpactRecord | StickingRecord],
    numbers: Mapping[str, tuple[int, ...]],
    batch: tuple[int, ...],
) -> None:
    """Raise a ValueError if a record of occurrences does not have the arrays of a batch, each with these last axes."""
    if not isinstance(record, kind):
        raise ValueError(f"{what} is {excerpt(record)}; expected {kind.__name__}")
    _check_array(f"{what}.count", record.count, "i", batch)
    first = np.shape(getattr(record, next(iter(numbers))))
    most = first[len(batch)] if len(first) > len(batch) else 1
    for name, last in numbers.items():
        _check_array(f"{what}.{name}", getattr(record, name), "f", (*batch, most, *last))


def _check_array(name: str, value: Any, kind: str, shape: tuple[int, ...]) -> None:
    """Raise a ValueError if a value is not an array of this kind of dtype and this shape."""
    if not isinstance(value, np.ndarray | np.generic) or value.dtype.kind != kind:
        found = f"has type {value.dtype}" if hasattr(value, "dtype") else f"is {excerpt(value)}"
        expected = {"f": "real numbers", "i": "integers", "b": "truth values"}[kind]
        raise ValueError(f"{name} {found}; expected an array of {expected}")
    if value.shape != shape:
        raise ValueError(f"{name} has shape {value.shape}; expected {shape}")


class _Reader:
    """Makes the trajectory that a JSON document and the arrays of a file describe."""

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.arrays = arrays
        self.forces: tuple[Any, ...] = ()

    def motion(self, contents: Mapping[str, Any]) -> Trajectory:
        """Return the trajectory."""
        given = dict(contents["fields"])
        self.forces = self.decoded(given.pop("forces"))
        fields = {name: self.decoded(value) for name, value in given.items()}
        tau_and_qdd = self.decoded(contents["tau_and_qdd"])
        motion = Trajectory(
            **fields,
            forces=self.forces,
            model=self.model(contents["model"]),
            exceptions={tuple(index): text for index, text in contents["exceptions"]},
            _compute_tau_and_qdd=None if tau_and_qdd is None else lambda: tau_and_qdd,
        )
        _check(motion, tau_and_qdd)
        return motion

    def model(self, given: Mapping[str, Any]) -> Model:
        """Return the model."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of an inertia; the warning appeared when the model was made
            nominal = model_of_toml(given["toml"], "the model")
        if not given["varies"]:
            return nominal
        fields = {name: self.decoded(value) for name, value in given["fields"].items()}
        nominal.vary(**fields)  # checks them
        description: Description = dataclasses.replace(nominal.description, **fields, nominal=nominal.description)
        return Model(description)

    def decoded(self, given: Any) -> Any:
        """Return the value that `_Writer.encoded` has described."""
        if isinstance(given, list):
            return tuple(self.decoded(item) for item in given)
        if not isinstance(given, dict):
            return given
        if "array" in given:
            return self.arrays[given["array"]][()]
        if "table" in given:
            return {key: self.decoded(item) for key, item in given["table"].items()}
        if "force" in given:
            return self.forces[given["force"]]
        cls = CLASSES[given["kind"]]
        return cls(**{name: self.decoded(item) for name, item in with_present_names(cls, given["fields"]).items()})
