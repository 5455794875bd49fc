"""Determinable: whether inertia and constraints determine the accelerations of a mechanism."""

from __future__ import annotations

from typing import Self

import numpy as np

from ..common.lock_free import cached_property
from ..errors import ModelError
from .added_inertias import with_added_inertias
from .determined import undetermined_dofs
from .kernel_arrays import KernelArrays
from .massless import INERTIAL_FIELDS, OwnInertia, bodies_of_dofs, dofs_without_inertia, own_inertia, remedies

FIELDS_OF_OWN_INERTIA = tuple(field for field in INERTIAL_FIELDS if field != "mass")


class Determinable(KernelArrays):
    """The arrays of a mechanism, with the bodies and the samples whose accelerations are not determined."""

    @cached_property
    def dofs_of_tree_without_inertia(self) -> np.ndarray:
        """The result of `dofs_without_inertia`, for an open tree without the constraints."""
        same = self._similar_with_equal(INERTIAL_FIELDS)
        if same is not None:
            return same.dofs_of_tree_without_inertia
        same = self._similar_with_equal(FIELDS_OF_OWN_INERTIA)
        return dofs_without_inertia(self.description, own=None if same is None else same.own_inertia_of_bodies)

    @cached_property
    def own_inertia_of_bodies(self) -> OwnInertia:
        """The result of `own_inertia`."""
        with np.errstate(over="ignore", invalid="ignore"):
            return own_inertia(self.description)

    @cached_property
    def _dofs_without_inertia(self) -> np.ndarray:
        return self._undetermined(None, None)

    def _undetermined(self, held: np.ndarray | None, resisted: np.ndarray | None) -> np.ndarray:
        """Return the degrees of freedom (samples, nv) whose accelerations inertia and constraints do not determine."""
        free = self.dofs_of_tree_without_inertia
        if (held is not None or resisted is not None) and free.any():
            free = dofs_without_inertia(self.description, held, resisted)
        if not (self.description.constraints and free.any()):
            return free
        nothing = np.zeros(self.nv, bool)
        held, resisted = (nothing if given is None else given for given in (held, resisted))
        return undetermined_dofs(self.description, free, held, resisted)

    @cached_property
    def has_inertia(self) -> bool:
        """Whether inertia and constraints determine all accelerations, in every sample."""
        return not self._dofs_without_inertia.any()

    @cached_property
    def bodies_without_inertia(self) -> tuple[str, ...]:
        """Names of the bodies whose accelerations inertia and constraints do not determine, in every sample."""
        free = self._dofs_without_inertia
        return bodies_of_dofs(self.description, free[0]) if len(free) and free.any(-1).all() else ()

    def samples_without_inertia(
        self, what: str, held: np.ndarray | None = None, resisted: np.ndarray | None = None
    ) -> np.ndarray:
        """Find the samples in which inertia and constraints do not determine all accelerations.

        Parameters
        ----------
        what : str
            The function that needs the accelerations, for the message.
        held : (nv,) array of bool, optional
            Degrees of freedom whose accelerations are prescribed.
        resisted : (nv,) or (samples, nv) array of bool, optional
            Degrees of freedom that a spring or damper resists as inertia does.

        Returns
        -------
        (*batch_shape) array of bool

        Raises
        ------
        ModelError
            If the accelerations are determined in none of the samples.
        """
        free = self._dofs_without_inertia if held is None and resisted is None else self._undetermined(held, resisted)
        _checked(free, what, self)
        return _of_samples(free, self.batch_shape)

    def with_inertia(self, what: str) -> Self:
        """Return the model for a function that divides by the inertia of the tree.

        Samples without inertia have rotors of NaN, which make them fail. Otherwise, round-off could be taken for their
        inertia. Raises a ModelError if no sample has inertia.
        """
        _checked(self.dofs_of_tree_without_inertia, what, self)
        return self._failing_in_tree

    @cached_property
    def _failing_in_tree(self) -> Self:
        return self._failing_where(_of_samples(self.dofs_of_tree_without_inertia, self.batch_shape))

    def for_dynamics(self, what: str, held: np.ndarray | None = None, resisted: np.ndarray | None = None) -> Self:
        """Return the model for the dynamics, in which samples with undetermined accelerations fail.

        With closed loops, constraints may determine the accelerations of massless bodies, and the light degrees of
        freedom have added inertias. Parameters and errors are the same as for `samples_without_inertia`.
        """
        if self.has_inertia:
            return self.with_added_inertias
        without = self.samples_without_inertia(what, held, resisted)
        if held is None and resisted is None:
            return self._failing_in_dynamics
        return self._failing_where(without).with_added_inertias

    @cached_property
    def with_added_inertias(self) -> Self:
        """The model with the added inertias of its closed loops; itself if there are none."""
        if not self.description.constraints:
            return self
        changed, of_float32 = (with_added_inertias(self.description, name) for name in ("float64", "float32"))
        if changed is None or of_float32 is None:
            return self
        model = type(self)(changed)
        model.of_float32 = of_float32
        return model

    @cached_property
    def _failing_in_dynamics(self) -> Self:
        failing = self._failing_where(_of_samples(self._dofs_without_inertia, self.batch_shape))
        return failing.with_added_inertias

    def _failing_where(self, samples: np.ndarray) -> Self:
        """Return the model in which these samples (*batch_shape) have rotors of NaN; itself if there are none."""
        if not samples.any():
            return self
        rotors = np.where(samples[..., None], np.nan, self.description.rotor_inertia)
        return type(self)(self.description.replaced({"rotor_inertia": rotors}), self)


def _of_samples(free: np.ndarray, batch_shape: tuple[int, ...]) -> np.ndarray:
    """Return which samples (*batch_shape) have a degree of freedom `free`, (samples, nv); (1, nv) for equal samples."""
    without = np.asarray(free.any(-1))
    return np.broadcast_to(without[0], batch_shape) if len(without) == 1 else without.reshape(batch_shape)


def _checked(free: np.ndarray, what: str, model: KernelArrays) -> None:
    """Raise an error if all samples have a degree of freedom `free` (samples, nv); `what` needs accelerations."""
    if len(free) and free.any(-1).all():
        found = remedies(model.description.name, bodies_of_dofs(model.description, free[0]))
        raise ModelError(f"{what}: {found}. Kinematics and inverse dynamics work without inertia")
