"""Quantities of a model that a user function needs: rbchain computes them, and passes them to the function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from ..common.real_arrays import excerpt
from ..common.values import Value
from ..errors import ArgumentError
from ..model.arguments import names_of_frames
from ..model.kernel_arrays import ORIGIN
from .drives import NOMINAL, OWN
from .user_arguments import Layout, record_of_computed

if TYPE_CHECKING:
    from ..facade.model import Model

#: Fields of Needs that name frames, and those that are True or False.
OF_FRAMES, OF_MODEL = ("pose", "jacobian", "jacobian_derivative"), ("mass_matrix", "bias_forces", "gravity_forces")


@dataclass(frozen=True, eq=False)
class Needs(Value):
    """Quantities of the model that a function of `Sampled` receives.

    rbchain computes each of them once in each period, from the measured positions and velocities. The function
    receives them as a named tuple of arrays in its argument `computed`: the last argument, or the last before `out` in
    a compiled function. A compiled function gets the arrays of one sample. A function in plain Python gets the arrays
    of the whole batch, whose shapes begin with (...).

    Parameters
    ----------
    pose : str or sequence of str, optional
        A body or frame, or m of these: `computed.translation` (..., 3) in m, and `computed.rotation` (..., 3, 3). For
        several frames: (..., m, 3) and (..., m, 3, 3).
    jacobian : str or sequence of str, optional
        `computed.jacobian` (..., 6, nv) or (..., m, 6, nv): the result of `Model.jacobian`.
    jacobian_derivative : str or sequence of str, optional
        `computed.jacobian_derivative`, of the same shape: the result of `Model.jacobian_derivative`.
    mass_matrix : bool
        `computed.mass_matrix` (..., nv, nv).
    bias_forces : bool
        `computed.bias_forces` (..., nv): Coriolis, centrifugal and gravity forces.
    gravity_forces : bool
        `computed.gravity_forces` (..., nv): the joint forces that hold the mechanism at rest.
    model : "nominal", "own" or Model
        The model of the controller: the nominal model, the simulated model with the parameters of each sample, or
        another one. Compiled functions and drives with a `controller_model` can use only one model besides "own" in a
        simulation.

    Raises
    ------
    ArgumentError
        If no quantity is requested, or a field has a value of the wrong type. From `Model.simulate`, if compiled
        functions and drives use several models besides "own".

    Examples
    --------
    A controller holds an arm against its weight:

    >>> import rbchain as rb
    >>> def compensate(t, q, qd, parameters, computed):
    ...     return computed.gravity_forces
    >>> drive = rb.Sampled(compensate, period=1e-3, needs=rb.Needs(gravity_forces=True))
    >>> motion = rb.Model.serial_chain(2).simulate([[0.3, 0.2], [0.1, 0.5]], duration=0.05, drives=[drive])
    >>> bool(abs(motion.q[:, -1] - motion.q[:, 0]).max() < 1e-9)
    True
    """

    internal_names: ClassVar[tuple[str, ...]] = ("names",)
    pose: str | Sequence[str] | None = None
    jacobian: str | Sequence[str] | None = None
    jacobian_derivative: str | Sequence[str] | None = None
    mass_matrix: bool = False
    bias_forces: bool = False
    gravity_forces: bool = False
    model: Model | Literal["nominal", "own"] = "nominal"

    def __post_init__(self) -> None:
        for name in OF_MODEL:
            if not isinstance(getattr(self, name), (bool, np.bool)):
                raise ArgumentError(f"Needs: {name} is {excerpt(getattr(self, name))}; expected True or False")
        for name in OF_FRAMES:
            frames = getattr(self, name)
            if frames is not None and not isinstance(frames, str):
                object.__setattr__(self, name, tuple(names_of_frames(frames)))
        if isinstance(self.model, str) and self.model not in (NOMINAL, OWN):
            raise ArgumentError(f"Needs: model is {self.model!r}; expected 'nominal', 'own' or a Model")
        if not self.names:
            raise ArgumentError(
                "Needs: nothing is needed; expected at least one quantity, such as jacobian='tool' or mass_matrix=True"
            )

    @property
    def names(self) -> list[str]:
        """Names of the quantities that are needed."""
        return [name for name in (*OF_FRAMES, *OF_MODEL) if getattr(self, name) not in (None, False, ())]


class NeededQuantities:
    """Computes the quantities that a function needs, with the model of the controller.

    `layout` are the names and the shapes of the arrays for one sample, in the order in which the function gets them.
    """

    def __init__(self, needs: Needs, model: Model) -> None:
        self.needs, self.model, self._neutral = needs, model, model.neutral()
        for name in OF_FRAMES:
            for frame in self.frames(name):
                model.kernel_model.observed_point(frame, ORIGIN, None)  # raises an error for an unknown name
        self.layout: Layout = tuple(array for name in needs.names for array in self._arrays(name))
        self._record = record_of_computed([name for name, _ in self.layout])

    def frames(self, name: str) -> list[str]:
        """Return the frames of which a quantity is needed, such as "pose"."""
        frames = getattr(self.needs, name) or ()
        return [frames] if isinstance(frames, str) else [*frames]

    def _arrays(self, name: str) -> Layout:
        """Return the names and the shapes of the arrays of one quantity."""
        given, nv = getattr(self.needs, name), self.model.nv
        frames = () if name in OF_MODEL or isinstance(given, str) else (len(given),)
        if name == "pose":
            return ("translation", (*frames, 3)), ("rotation", (*frames, 3, 3))
        if name in OF_FRAMES:
            return ((name, (*frames, 6, nv)),)
        return ((name, (nv, nv) if name == "mass_matrix" else (nv,)),)

    def compute(self, q: np.ndarray, qd: np.ndarray, due: np.ndarray) -> tuple[Any, ...]:
        """Return the quantities in measured states (..., nq) and (..., nv).

        Samples that are not `due` (...) have no valid measurement. They get the quantities of the neutral positions.
        """
        q, qd = np.where(due[..., None], q, self._neutral), np.where(due[..., None], qd, 0.0)
        return self._record(*self._arrays_of(self.model, q, qd))

    def numbers_of_sample(self, sample: int, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return the quantities in a state of one sample, the number of one in the flat batch, as a flat array."""
        batch = self.model.batch_shape
        own = self.model[tuple(map(int, np.unravel_index(sample, batch)))] if batch else self.model
        return np.concatenate([x.ravel() for x in self._arrays_of(own, q, qd)])

    def _arrays_of(self, model: Model, q: np.ndarray, qd: np.ndarray) -> list[np.ndarray]:
        found: list[np.ndarray] = []
        for name in self.needs.names:
            given = getattr(self.needs, name)
            if name == "pose":
                pose = model.frame_poses(q, given)
                found += [pose.translation, pose.rotation]
            elif name in ("jacobian", "mass_matrix", "gravity_forces"):
                found.append(getattr(model, name)(q, *([given] if name == "jacobian" else [])))
            else:
                states = (q, qd, given) if name == "jacobian_derivative" else (q, qd)
                found.append(getattr(model, name)(*states))
        return found
