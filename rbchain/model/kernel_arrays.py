"""KernelArrays: the arrays of a mechanism that a driver needs besides a state, and its frames."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Self

import numpy as np
import numpy.typing as npt

from ..common.lock_free import cached_property
from ..common.misspelled import did_you_mean
from ..common.real_arrays import FLOAT64, excerpt
from ..core.loops.constraint_layout import ConstraintTables
from ..core.tree.layout import TOPOLOGY_PASSIVE, Variation
from ..errors import ArgumentError, ModelError, UnknownNameError
from .constraint_tables import row_counts_of, tables_of
from .description import VARIABLE_FIELDS, WATER_FIELDS, Description, Frame, is_in_water
from .editing import check_joints
from .parameters import Known, batch_shape_of, rotated_axes
from .pose import Pose, vector3
from .precision import parameters_and_variation
from .topology import PASSIVE_CODES, dofs_of, topology_of

#: The fields that the topology depends on.
FIELDS_OF_TOPOLOGY = (*(field for fields in PASSIVE_CODES.values() for field in fields), *WATER_FIELDS)
#: The point of a frame in `Model.jacobian` if none is given, m.
ORIGIN = (0.0, 0.0, 0.0)

#: What to use in place of a compliant constraint.
IN_PLACE = "Use the force Bushing.in_place_of(constraint, compliance=...) instead"


class KernelArrays:
    """A mechanism as arrays for the kernels.

    Parameters
    ----------
    description : Description
    similar : KernelArrays, optional
        A model of the same mechanism with other numbers.

    Attributes
    ----------
    description : Description
        Names and numbers of the mechanism. They determine everything else.
    dofs : Dofs
        The degrees of freedom of each body.
    topology : array of int
        The tree: one column per degree of freedom, rows as in `core.tree.layout`.
    nq, nv, n_bodies : int
        Numbers of positions, velocities and moving bodies.
    batch_shape : tuple
        Shape of the batch of samples whose parameters differ; () if all samples share them.
    similar : KernelArrays or None
        A model of the same mechanism without a batch. What depends on the same values in both is taken from it.
    of_float32 : Description
        The description with the values for float32; only added inertias depend on the precision.
    constraint_rows : int
        Number of equations of all constraints; 0 for an open chain.
    """

    def __init__(self, description: Description, similar: Self | None = None) -> None:
        origin = None if similar is None else similar.similar or similar
        self.description = description
        self.similar: Self | None = None if origin is None or origin.batch_shape else origin
        self._differing = frozenset(VARIABLE_FIELDS)
        if self.similar is not None:
            self._differing = _differing_fields(description, self.similar.description)
        self.dofs = dofs_of(description)
        self.nv = len(description.dof_types)
        self.nq = int(self.dofs.position_counts.sum())
        self.n_bodies = len(description.body_names)
        same = self._similar_with_equal(FIELDS_OF_TOPOLOGY)
        self.topology: np.ndarray = topology_of(description) if same is None else same.topology
        self.batch_shape: tuple[int, ...] = batch_shape_of(description, self._differing)
        self.constraint_rows = int(row_counts_of(description).sum())
        self._arrays: dict[int, tuple[np.ndarray, np.ndarray, Variation | None]] = {}
        self.similars: dict[str, np.ndarray] = {}
        self.of_float32 = description
        for field in ("parent", "dof_counts", "limits", *self._differing):
            getattr(description, field).flags.writeable = False

    def _similar_with_equal(self, fields: Collection[str]) -> Self | None:
        """Return the similar model if it has the same values of these fields, else None."""
        return self.similar if self._differing.isdisjoint(fields) else None

    def arrays(self, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray, Variation | None]:
        """Topology, parameters and variation for the drivers, in one precision."""
        if dtype.itemsize not in self._arrays:
            self._arrays[dtype.itemsize] = (self.topology, *self._parameters(dtype, self.in_water, self._known))
        return self._arrays[dtype.itemsize]

    def parameters(self, dtype: np.dtype, in_water: bool) -> tuple[np.ndarray, Variation | None]:
        """Parameters and variation in one precision, with the columns of a model in water or without them."""
        if in_water == self.in_water:
            return self.arrays(dtype)[1:]
        return self._parameters(dtype, in_water)

    def _parameters(
        self, dtype: np.dtype, in_water: bool, known: Known | None = None
    ) -> tuple[np.ndarray, Variation | None]:
        numbers = self.of_float32 if dtype == np.float32 else self.description  # added inertias depend on the precision
        return parameters_and_variation(numbers, dtype, in_water, self.rotated_axes_of_joints, known)

    @property
    def _known(self) -> Known | None:
        """The parameters of the similar model, if they have the same columns."""
        if self.similar is None or self.similar.in_water != self.in_water:
            return None
        try:
            return Known(self.similar.arrays(FLOAT64)[1], self._differing)
        except ModelError:  # its values are beyond the range of float64, those of this model may not be
            return None

    @cached_property
    def rotated_axes_of_joints(self) -> tuple[np.ndarray, np.ndarray]:
        """The result of `rotated_axes`."""
        same = self._similar_with_equal(("axis",))
        return rotated_axes(self.description) if same is None else same.rotated_axes_of_joints

    @cached_property
    def constraint_tables(self) -> ConstraintTables | None:
        """The tables of the constraints; None for an open chain."""
        if self.similar is not None:
            return self.similar.constraint_tables
        return tables_of(self.description) if self.description.constraints else None

    @cached_property
    def in_water(self) -> bool:
        """Whether a fluid acts on any body."""
        same = self._similar_with_equal(WATER_FIELDS)
        return is_in_water(self.description) if same is None else same.in_water

    @cached_property
    def has_passive_or_fluid_forces(self) -> bool:
        """Whether passive joint forces or forces of a fluid act."""
        return self.in_water or bool((self.topology[TOPOLOGY_PASSIVE] != 0).any())

    @property
    def has_drag(self) -> bool:
        """Whether a fluid damps the motion of any body."""
        fields = (self.description.linear_damping, self.description.quadratic_damping, self.description.strip_drag)
        return self.in_water and any(field.any() for field in fields)

    @cached_property
    def unguarded_limits(self) -> np.ndarray:
        """The position limits (..., nv, 2) without an elastic stop in their direction; infinite ones elsewhere.

        They have batch axes if the stops of the samples differ.
        """
        d = self.description
        has_stop = [np.isfinite(x) & (d.limit_stiffness != 0.0) for x in (d.stop_lower, d.stop_upper)]
        return np.where(np.stack(np.broadcast_arrays(*has_stop), -1), [-np.inf, np.inf], d.limits[:, :2])

    def refuse_water(self, what: str) -> None:
        """Raise an ArgumentError if the model is in water, because the function `what` does not support water."""
        if self.in_water:
            raise ArgumentError(
                f"{what} does not support bodies in water; expected a model with fluid_density 0. "
                "Use model.replace(fluid_density=0.0)"
            )

    def refuse_constraints(self, what: str, remedy: str) -> None:
        """Raise a ModelError if the model has constraints, because the function `what` does not support them."""
        if self.constraint_rows:
            names = excerpt([place.name for place in self.description.constraints])
            raise ModelError(
                f"{what} does not support closed loops, and model {self.description.name!r} has the constraints "
                f"{names}; expected a model without constraints. {remedy}"
            )

    @cached_property
    def is_rigid_row(self) -> np.ndarray:
        """Whether each row of the constraints of the mechanism belongs to a rigid constraint (m,)."""
        places = [place for place in self.description.constraints if place.dof < 0]
        return np.repeat([not place.is_compliant for place in places], row_counts_of(self.description))

    def refuse_compliance(self, what: str, remedy: str = IN_PLACE) -> None:
        """Raise a ModelError if the model has compliant constraints, because `what` does not support them."""
        names = [place.name for place in self.description.constraints if place.is_compliant]
        if names:
            raise ModelError(
                f"{what} does not support compliant constraints, and model {self.description.name!r} has "
                f"{excerpt(names)}; expected rigid constraints. {remedy}"
            )

    def refuse_actuated(self, actuated: object) -> None:
        """Raise a ModelError if actuated joints are given for a model without constraints."""
        if actuated is not None:
            raise ModelError(
                f"actuated is {excerpt(actuated)}, but model {self.description.name!r} has no constraints, so "
                "accelerations determine all joint forces. Remove actuated: it applies only to models with constraints"
            )

    def closed_chain(self, what: str) -> Self:
        """Return this model; raise a ModelError if it has no constraints."""
        if not self.constraint_rows:
            raise ModelError(
                f"{what}: model {self.description.name!r} has no constraints; expected closed loops. Add constraints "
                "with ModelBuilder.add_constraint"
            )
        return self

    def dofs_of_joints(self, what: str, joints: Sequence[str]) -> np.ndarray:
        """Return the degrees of freedom of joints, in the order of their names; `what` names the argument."""
        if isinstance(joints, str):
            raise ModelError(f"{what} is {joints!r}; expected a list of names, such as {what}=[{joints!r}]")
        joints, known = tuple(joints), self.description.joint_names
        check_joints(what, joints, known)
        dofs = [np.flatnonzero(self.dofs.body == known.index(joint)) for joint in joints]
        return np.concatenate([np.zeros(0, int), *dofs])

    @cached_property
    def weightless(self) -> Self:
        """The same model without gravity."""
        weightless = self.description.replaced({"gravity": np.zeros_like(self.description.gravity)})
        return type(self)(weightless, self)

    # --- frames -------------------------------------------------------------------------------------------------------

    def frame(self, name: str) -> Frame:
        """Return the frame of a moving body, or a frame on a fixed joint, by its name."""
        bodies, fixed = self.description.body_names, self.description.frames
        if not isinstance(name, str):
            raise ModelError(
                f"frame is {excerpt(name)}; expected the name of one body or frame, such as {bodies[-1]!r}"
            )
        if name in bodies:
            return Frame(bodies.index(name), Pose())
        if name not in fixed:
            names = [*bodies, *fixed]
            raise UnknownNameError(
                f"the model has no body or frame {name!r}; expected one of {excerpt(names)}{did_you_mean(name, names)}"
            )
        return fixed[name]

    def observed_point(self, frame: str, point: npt.ArrayLike, relative_to: str | None) -> np.ndarray:
        """Return a point of a frame as drivers of Jacobians take it: (5,), dof, dof of the observer, x, y, z.

        The dof is the last one of the body that carries the frame, or nv for the world. The coordinates, in m, are in
        the axes of that body.
        """
        if point is not ORIGIN or relative_to is not None or type(frame) is not str:
            return self._observed_point(frame, point, relative_to)
        observed = self.similars.get(frame)
        if observed is None:
            observed = self.similars[frame] = self._observed_point(frame, point, None)
        return observed

    def _observed_point(self, frame: str, point: npt.ArrayLike, relative_to: str | None) -> np.ndarray:
        dof, place = self._dof_and_point(frame, vector3(point, "point"))
        observer = self.nv if relative_to is None else self._dof_and_point(relative_to, np.zeros(3))[0]
        return np.array([dof, observer, *place])

    def _dof_and_point(self, name: str, point: np.ndarray) -> tuple[int, np.ndarray]:
        frame = self.frame(name)
        place = frame.pose.rotation @ point + frame.pose.translation
        return self.nv if frame.body < 0 else int(self.dofs.last[frame.body]), place


def _differing_fields(description: Description, other: Description) -> frozenset[str]:
    """Return the names of the fields in which two descriptions have different arrays."""
    ours, theirs = vars(description), vars(other)
    return frozenset(name for name in VARIABLE_FIELDS if ours[name] is not theirs[name])
