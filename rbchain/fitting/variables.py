"""The variables of a fit: numbers near zero that determine the parameters of a model, with their derivatives."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..common.real_arrays import FloatArray
from ..errors import ArgumentError, ModelError
from ..model.passive import PASSIVE_UNITS

if TYPE_CHECKING:
    from ..facade.model import Model
    from .initial_states import InitialState

#: Parameters that may have any sign. All others are positive, and fitted as logarithms.
SIGNED = ("rest_position", "cubic_stiffness", "gear_ratio", "tau")
#: Their largest change, as a multiple of the absolute value of the initial guess, or of 1 in SI units if it is larger.
LARGEST_CHANGE_OF_SIGNED = 1000.0
#: SI units; " or " separates the units for a rotation and for a translation.
UNITS = PASSIVE_UNITS | {
    **{"gravity": "m/s^2", "mass": "kg", "cg": "m", "inertia": "kg m^2", "rotor_inertia": "kg m^2 or "},
    **{"q": "rad or m", "qd": "rad/s or m/s", "tau": "N m or N"},
    **{"gear_friction": "1", "placement_translation": "m"},
    **{"kp": "N m/rad or N/m", "ki": "N m/(rad s) or N/(m s)", "kd": "N m s/rad or N s/m"},
}
#: The largest possible numbers of parameters.
LARGEST_NUMBERS = {"gear_friction": 1.0}
#: Rows and columns of the six numbers of a tensor.
TENSOR = ((0, 0, 0, 1, 1, 2), (0, 1, 2, 1, 2, 2))


class Variables:
    """The variables of one parameter name, zero at the initial guess, and the parameter as a function of them.

    `largest_change` is the largest absolute value of the variables, and `largest_number` the largest possible value of
    the numbers that the labels name.
    """

    largest_change = 5.0  # of a logarithm: a factor of 148
    largest_number = np.inf

    def __init__(self, labels: list[str], is_varied: bool = True) -> None:
        self.labels, self.is_varied = labels, is_varied

    def values(self, x: FloatArray) -> FloatArray:
        """Return the parameters (starts, ...) for variables x (starts, count)."""
        raise NotImplementedError

    def slopes(self, x: FloatArray) -> FloatArray:
        """Return the derivatives (starts, ..., count) of the parameters with respect to the variables."""
        raise NotImplementedError

    def numbers(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the labeled parameters and their derivatives with respect to the variables, for one start."""
        raise NotImplementedError

    def scales(self, x: FloatArray) -> FloatArray:
        """Return the changes of these parameters that count as 100 %."""
        raise NotImplementedError


class EntryVariables(Variables):
    """Entries of an array: first + scale x, or first exp(x) for logarithms.

    The numbers that the labels name are these entries plus `origin`.
    """

    def __init__(
        self,
        first: FloatArray,
        entries: np.ndarray,
        scale: FloatArray | None,
        labels: list[str],
        is_varied: bool = True,
        origin: FloatArray | float = 0.0,
    ) -> None:
        super().__init__(labels, is_varied)
        self.first, self.entries, self.scale = first, entries, scale
        self.origin = np.broadcast_to(origin, entries.size)

    def at(self, place: int, number: float) -> float:
        """Return the variable at which a number has this value; infinite if there is none."""
        first = self.first.reshape(-1)[self.entries[place]] + self.origin[place]
        if self.scale is not None:
            return float((number - first) / self.scale[place])
        return float(np.log(number / first)) if number > 0.0 else -np.inf

    def values(self, x: FloatArray) -> FloatArray:
        found = np.tile(self.first.reshape(-1), (len(x), 1))
        found[:, self.entries] = self._chosen(x)
        return found.reshape(len(x), *self.first.shape)

    def _chosen(self, x: FloatArray) -> FloatArray:
        first = self.first.reshape(-1)[self.entries]
        chosen = first * np.exp(x) if self.scale is None else first + self.scale * x
        return np.minimum(chosen, self.largest_number)  # in spite of round-off

    def slopes(self, x: FloatArray) -> FloatArray:
        found = np.zeros((len(x), self.first.size, len(self.entries)))
        found[:, self.entries, np.arange(len(self.entries))] = self._chosen(x) if self.scale is None else self.scale
        return found.reshape(len(x), *self.first.shape, -1)

    def numbers(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self._chosen(x)[0] + self.origin, self.slopes(x)[0].reshape(self.first.size, -1)[self.entries]

    def scales(self, x: FloatArray) -> FloatArray:
        return self._chosen(x)[0] if self.scale is None else self.scale


class TensorVariables(Variables):
    """Inertia tensors about the centers of mass, in the log-Cholesky form of Rucker and Wensing (2022).

    The second moment S = tr(I) / 2 - I is L L^T. L is upper triangular, with the variables d and s: the entries of its
    diagonal are l exp(d), the others l + s times the size of L.
    """

    def __init__(self, model: Model, bodies: Collection[int]) -> None:
        self.inertia, self.bodies = model.inertia, np.array(sorted(bodies))
        names = [model.body_names[i] for i in self.bodies]
        of_bodies = model.inertia[self.bodies]
        trace = np.trace(of_bodies, axis1=-2, axis2=-1)[:, None, None]
        labels = [f"{body}.inertia.{'xyz'[i]}{'xyz'[j]}" for body in names for i, j in zip(*TENSOR, strict=True)]
        super().__init__(labels)
        moments = 0.5 * trace * np.eye(3) - of_bodies
        smallest = np.linalg.eigvalsh(moments)[:, 0]
        flat = [name for name, value, t in zip(names, smallest, trace[:, 0, 0], strict=True) if not value > 1e-9 * t]
        if flat:
            raise ModelError(
                f"bodies {flat} have the inertia of a rod, a plate or a point, which the log-Cholesky form does not "
                'contain; expected positive second moments. Change the tensors, or do not fit "inertia"'
            )
        self.L = np.linalg.cholesky(moments[:, ::-1, ::-1])[:, ::-1, ::-1]
        self.size = np.sqrt(trace[:, 0, 0])

    def _factors(self, x: FloatArray) -> FloatArray:
        x, L = x.reshape(len(x), -1, 6), np.tile(self.L, (len(x), 1, 1, 1))
        for entry, (i, j) in enumerate(zip(*TENSOR, strict=True)):
            change = x[..., entry]
            L[..., i, j] = L[..., i, j] * np.exp(change) if i == j else L[..., i, j] + self.size * change
        return L

    def values(self, x: FloatArray) -> FloatArray:
        L = self._factors(x)
        found = np.tile(self.inertia, (len(x), 1, 1, 1))
        found[:, self.bodies] = _tensor_of_moment(L @ np.swapaxes(L, -1, -2))
        return found

    def slopes(self, x: FloatArray) -> FloatArray:
        L = self._factors(x)
        found = np.zeros((len(x), len(self.inertia), 3, 3, len(self.size), 6))
        for entry, (i, j) in enumerate(zip(*TENSOR, strict=True)):
            change = np.zeros_like(L)
            change[..., i, j] = L[..., i, j] if i == j else self.size
            product = change @ np.swapaxes(L, -1, -2)
            tensors = _tensor_of_moment(product + np.swapaxes(product, -1, -2))
            for place, body in enumerate(self.bodies):
                found[:, body, :, :, place, entry] = tensors[:, place]
        return found.reshape(*found.shape[:4], -1)

    def numbers(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        upper = (slice(None), *TENSOR)
        values, slopes = (found[0][self.bodies][upper] for found in (self.values(x), self.slopes(x)))
        return values.reshape(-1), slopes.reshape(x.shape[1], -1)

    def scales(self, x: FloatArray) -> FloatArray:
        return np.repeat(np.trace(self.values(x)[0][self.bodies], axis1=-2, axis2=-1) / 3.0, 6)


def _tensor_of_moment(moment: FloatArray) -> FloatArray:
    return np.trace(moment, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - moment


def variables_of(
    model: Model,
    name: str,
    tau: FloatArray,
    of_drives: dict[str, FloatArray],
    driven: Sequence[int],
    wanted: Collection[int] | None = None,
) -> Variables:
    """Return the variables of a field.

    `tau` (nv,) are the constant joint forces, and `of_drives` {name: (nv,)} the gains of PID drives and the numbers of
    actuators. `driven` are the degrees of freedom whose motion a drive prescribes, which have no constant force.
    `wanted` are the entries of the flat array that are fitted, of "inertia" the bodies; None stands for all.

    Raises
    ------
    ArgumentError, ModelError
        If the parameter is zero everywhere, or an inertia tensor belongs to a rod, a plate or a point.
    """
    if name == "gravity":
        entries = np.arange(3) if wanted is None else np.array(sorted(wanted))
        size = np.full(entries.size, float(np.linalg.norm(model.gravity)) or 1.0)
        return EntryVariables(model.gravity, entries, size, [f"gravity.{'xyz'[entry]}" for entry in entries])
    if name == "placement_translation":
        entries = np.arange(3 * model.n_bodies) if wanted is None else np.array(sorted(wanted))
        size = np.full(entries.size, float(np.linalg.norm(model.placement_translation, axis=-1).max()) or 0.1)
        paths = [f"{body}.{name}.{axis}" for body in model.body_names for axis in "xyz"]
        return EntryVariables(model.placement_translation, entries, size, [paths[entry] for entry in entries])
    if name == "inertia":
        return TensorVariables(model, range(model.n_bodies) if wanted is None else wanted)
    joints = _owners_of_dofs(model)
    if name == "cg":
        gyration = np.sqrt(np.trace(model.inertia, axis1=-2, axis2=-1) / np.maximum(model.mass, 1e-300))
        bodies = np.flatnonzero(model.mass > 0.0)
        size = np.maximum(gyration, np.linalg.norm(model.cg, axis=-1))[bodies]
        size = np.repeat(np.where(size > 0.0, size, 0.1), 3)
        entries = (3 * bodies[:, None] + np.arange(3)).reshape(-1)
        paths = [f"{body}.cg.{axis}" for body in model.body_names for axis in "xyz"]
        is_wanted = _is_wanted(paths, entries, wanted, "belongs to a body without mass; expected a body with mass")
        entries, size = entries[is_wanted], size[is_wanted]
        return EntryVariables(model.cg, entries, size, [paths[entry] for entry in entries])
    first = of_drives[name] if name in of_drives else tau if name == "tau" else getattr(model, name)
    owners = [(body, "") for body in model.body_names] if name == "mass" else joints
    paths = [f"{owner}.{name}{dof}" for owner, dof in owners]
    entries = np.arange(first.size) if name in SIGNED else np.flatnonzero(first > 0.0)
    expected = "a positive initial guess. Use model.replace"
    if name == "gear_friction":
        expected = "an Actuator with a positive gear_friction"
    elif name in of_drives:
        expected = "a PID drive with a positive gain. A PID in a Sampled is not supported"
    problem = f"is zero and therefore stays fixed; expected {expected}"
    if name == "tau":
        entries = np.setdiff1d(entries, driven)
        if not entries.size:
            raise ArgumentError(
                'parameters contains "tau", but drives prescribe the motion of all joints, so tau has no effect; '
                'expected a joint that moves freely. Remove a drive, or do not fit "tau"'
            )
        problem = "has no effect, because a drive prescribes the motion; expected a joint that moves freely"
    if not entries.size and wanted is None:
        raise ArgumentError(
            f'parameters contains "{name}", but all its entries are zero, so they stay fixed; expected {expected}'
        )
    entries = entries[_is_wanted(paths, entries, wanted, problem)]
    scale = np.maximum(np.abs(first[entries]), 1.0) if name in SIGNED else None
    found = EntryVariables(first, entries, scale, [paths[i] for i in entries])
    if name in SIGNED:
        found.largest_change = LARGEST_CHANGE_OF_SIGNED
    found.largest_number = LARGEST_NUMBERS.get(name, np.inf)
    return found


def state_variables_of(
    model: Model, name: str, starts: Sequence[InitialState], wanted: Collection[int] | None
) -> Variables:
    """Return the displacements (motions, nv) of the initial "q" or "qd" of all trajectories as variables."""
    entries = [start.entries(name, wanted) for start in starts]
    owners = _owners_of_dofs(model)
    labels = [
        f"{start.name}{'.' if start.name else ''}{owners[i][0]}.{name}{owners[i][1]}"
        for start, chosen in zip(starts, entries, strict=True)
        for i in chosen
    ]
    flat = np.concatenate([k * model.nv + chosen for k, chosen in enumerate(entries)])
    origin = np.concatenate([start.numbers(name) for start in starts])[flat]
    return EntryVariables(np.zeros((len(starts), model.nv)), flat, np.ones(flat.size), labels, False, origin)


def units_of(model: Model, name: str, field: Variables) -> list[str]:
    """Return the SI units of the numbers of a field; empty where they depend on the mechanism."""
    units = UNITS.get(name, "").split(" or ")
    if len(units) == 1 or not isinstance(field, EntryVariables):
        return [units[0]] * len(field.labels)
    return [units[model.dof_types[entry % model.nv] == "prismatic"] for entry in field.entries]


def _owners_of_dofs(model: Model) -> list[tuple[str, str]]:
    """Return the name of the joint of each degree of freedom, and the end of its paths."""
    return [
        (model.joint_names[body], "" if count == 1 else f".{i}")
        for body, count in enumerate(model.kernel_model.dofs.counts)
        for i in range(count)
    ]


def _is_wanted(paths: Sequence[str], entries: np.ndarray, wanted: Collection[int] | None, problem: str) -> np.ndarray:
    """Return which of the entries that can be fitted are wanted.

    Raises ArgumentError if a wanted one cannot be fitted. `problem` states why.
    """
    if wanted is None:
        return np.full(entries.size, True)
    held = sorted(set(wanted) - set(entries.tolist()))
    if held:
        raise ArgumentError(f'parameters contains "{paths[held[0]]}", which {problem}')
    return np.isin(entries, list(wanted))
