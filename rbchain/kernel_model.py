"""KernelModel: a mechanism as the kernels read it. A state passes here from the facade's methods to a driver.

It owns what all drivers of a model share: the topology, the parameters in each precision, what samples vary, working
memory, and the checks of arguments. Pinocchio divides this between `Model` and `Data`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from .arguments import FLOAT32, FLOAT64, as_array, check_out, copied_to, precision_of
from .core.simd.levels import LANE_WIDTHS
from .core.tree.layout import TOPOLOGY_PASSIVE, Variation
from .drivers import threads
from .drivers.blocks import memory_size
from .errors import ModelError, StateError
from .lock_free import cached_property
from .model.description import VARIABLE_FIELDS, Description, Frame, is_in_water
from .model.flatten import batch_shape_of, dofs_of, parameters_of, topology_of, variation_of
from .model.massless import bodies_of_dofs, dofs_without_inertia, remedies
from .model.pose import Pose, vector3

ndarray = np.ndarray
NO_WRENCHES = (np.empty(0),)
POSITIONS = ("q", "q0", "q1")  # arguments with nq numbers; all others have nv
#: How far from 1 the length of a quaternion may be.
UNIT_LENGTH = {FLOAT64: 1e-6, FLOAT32: 1e-5}


class KernelModel:
    """A mechanism as the kernels read it.

    Attributes
    ----------
    description : Description
        The names and numbers of the mechanism, from which everything else follows.
    dofs : Dofs
        Which degrees of freedom belong to which body.
    topology : array of int
        The tree: one column per degree of freedom, rows as in `core.tree.layout`.
    nq, nv, n_bodies : int
    batch_shape : tuple
        Shape of the batch of samples whose parameters differ; () if all samples share them.
    """

    def __init__(self, description: Description) -> None:
        self.description = description
        self.dofs = dofs_of(description)
        self.nv = len(description.dof_types)
        self.nq = int(self.dofs.position_counts.sum())
        self.n_bodies = len(description.body_names)
        self.topology = topology_of(description)
        self.batch_shape = batch_shape_of(description)
        self._velocity_shape, self._position_shape = (self.nv,), (self.nq,)
        self._quaternions = self.dofs.quaternions
        self._shared = self.batch_shape == ()
        self._arrays: dict[int, tuple[np.ndarray, np.ndarray, Variation | None]] = {}
        self._spare_memory: dict[tuple[int, int, int], list[np.ndarray]] = {}
        self._for_one: dict[Callable[..., Any], tuple[int, list[np.ndarray]]] = {}
        for field in ("parent", "dof_counts", "limits", *VARIABLE_FIELDS):
            getattr(description, field).flags.writeable = False

    @cached_property
    def in_water(self) -> bool:
        """Whether there is a fluid that acts on a body."""
        return is_in_water(self.description)

    @cached_property
    def has_passive_or_fluid_forces(self) -> bool:
        """Whether forces act that no drive gives: passive joint forces, or those of a fluid."""
        return self.in_water or bool((self.topology[TOPOLOGY_PASSIVE] != 0).any())

    @property
    def has_drag(self) -> bool:
        """Whether a fluid takes energy from the bodies that move in it."""
        fields = (self.description.linear_damping, self.description.quadratic_damping, self.description.strip_drag)
        return self.in_water and any(field.any() for field in fields)

    def refuse_water(self, what: str) -> None:
        """Raise a StateError if the model is in water: `what` is computed for bodies in air."""
        if self.in_water:
            raise StateError(f"{what} is that of bodies in air; expected a model without fluid_density")

    @cached_property
    def weightless(self) -> Self:
        """The same model without gravity."""
        return type(self)(dataclasses.replace(self.description, gravity=np.zeros_like(self.description.gravity)))

    # --- frames -------------------------------------------------------------------------------------------------------

    def frame(self, name: str) -> Frame:
        """The frame with this name: that of a moving body, or one on a fixed joint."""
        bodies, fixed = self.description.body_names, self.description.frames
        if name in bodies:
            return Frame(bodies.index(name), Pose())
        if name not in fixed:
            raise ModelError(f"no body or frame {name!r}; the model has {[*bodies, *fixed]}")
        return fixed[name]

    def observed_point(
        self, frame: str, point: npt.ArrayLike, relative_to: str | None
    ) -> tuple[tuple[int, int, float, float, float]]:
        """A point of a frame as drivers of Jacobians take it: (dof, dof of the observer, x, y, z); nv is the world."""
        dof, place = self._dof_and_point(frame, vector3(point, "point"))
        observer = self.nv if relative_to is None else self._dof_and_point(relative_to, np.zeros(3))[0]
        x, y, z = place.tolist()
        return ((dof, observer, x, y, z),)

    def _dof_and_point(self, name: str, point: np.ndarray) -> tuple[int, np.ndarray]:
        """The last degree of freedom of the body that carries a frame, and a point of the frame in the body's axes."""
        frame = self.frame(name)
        place = frame.pose.rotation @ point + frame.pose.translation
        return self.nv if frame.body < 0 else int(self.dofs.last[frame.body]), place

    # --- inertia ------------------------------------------------------------------------------------------------------

    @cached_property
    def _dofs_without_inertia(self) -> np.ndarray:
        return dofs_without_inertia(self.description)

    @cached_property
    def has_inertia(self) -> bool:
        """Whether inertia determines all accelerations, in every sample."""
        return not self._dofs_without_inertia.any()

    @cached_property
    def bodies_without_inertia(self) -> tuple[str, ...]:
        free = self._dofs_without_inertia
        return bodies_of_dofs(self.description, free[0]) if len(free) and free.any(-1).all() else ()

    def samples_without_inertia(
        self, what: str, held: np.ndarray | None = None, resisted: np.ndarray | None = None
    ) -> np.ndarray:
        """Which samples (*batch_shape) have accelerations that `what` asks for and no inertia determines.

        Raise a ModelError if all have. `held` (nv,) are the degrees of freedom whose accelerations are given, and
        `resisted`, (nv,) or (samples, nv), those that something else than inertia resists.
        """
        free = self._dofs_without_inertia
        if (held is not None or resisted is not None) and free.any():
            free = dofs_without_inertia(self.description, held, resisted)
        without = np.asarray(free.any(-1))
        if len(without) and without.all():
            found = remedies(self.description.name, bodies_of_dofs(self.description, free[0]))
            raise ModelError(f"{what}: {found}. Kinematics and inverse dynamics need no inertia there")
        if len(without) == 1:  # for all samples, which do not differ in their inertias
            return np.broadcast_to(without[0], self.batch_shape)
        return without.reshape(self.batch_shape)

    def with_inertia(self, what: str, held: np.ndarray | None = None, resisted: np.ndarray | None = None) -> Self:
        """The model for what divides by inertia: its samples without inertia have rotors of NaN, and so fail.

        By itself, round-off could pass for their inertia. Raise a ModelError as `samples_without_inertia` does.
        """
        if self.has_inertia:
            return self
        without = self.samples_without_inertia(what, held, resisted)
        if not without.any():
            return self
        if held is None and resisted is None:
            return self._failing_without_inertia
        return self._failing_where(without)

    @cached_property
    def _failing_without_inertia(self) -> Self:
        return self._failing_where(self._dofs_without_inertia.any(-1).reshape(self.batch_shape))

    def _failing_where(self, samples: np.ndarray) -> Self:
        """The model in which these samples (*batch_shape) have rotors of NaN."""
        rotors = np.where(samples[..., None], np.nan, self.description.rotor_inertia)
        return type(self)(dataclasses.replace(self.description, rotor_inertia=rotors))

    # --- a call of a driver -------------------------------------------------------------------------------------------

    def compute(
        self,
        driver: Callable[..., Any],
        shape: tuple[int, ...],
        names: Sequence[str],
        states: Sequence[Any],
        *wrenches: Any,
        scratch: int = 0,
        given: tuple[Any, ...] = (),
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """Check the arguments, call a driver, and return what it finds for each sample, (..., *shape).

        `states` start with the positions. `wrenches` are given, or None, if the driver takes them; `scratch` is how
        many rows it needs beside those of its result; `given` are its arguments that are the same for all samples;
        `out` is where the result goes, or None for new memory.
        """
        if self._shared and out is None and (not wrenches or wrenches[0] is None):
            # fast path for one valid state: the checks would otherwise take longer than the dynamics
            own = self._position_shape
            for x in states:
                if type(x) is not ndarray or x.dtype is not FLOAT64 or x.shape != own or not x.flags.carray:
                    break
                own = self._velocity_shape
            else:
                if self._quaternions:
                    self._check_quaternions("q", states[0])
                try:
                    numbers, spare = self._for_one[driver]
                    memory = spare.pop()
                except (KeyError, IndexError):
                    numbers, spare = self._for_one.setdefault(driver, (math.prod(shape), []))
                    memory = self.new_memory(FLOAT64, 1, numbers + scratch)
                found: np.ndarray = np.empty(numbers)
                none = NO_WRENCHES if wrenches else ()
                driver(memory, *self._float64_arrays, *given, *states, *none, found, 0, 1)
                spare.append(memory)
                return found if len(shape) == 1 else found.reshape(shape)
        states = [as_array(name, x) for name, x in zip(names, states, strict=True)]
        wrenches = tuple(None if x is None else as_array("wrenches", x) for x in wrenches)
        axes = [x.ndim - 1 for x in states] + [x.ndim - 2 for x in wrenches if x is not None]
        extra = max(axes) - len(self.batch_shape)
        if not self._shared and extra > 0:
            settings: dict[str, Any] = {"scratch": scratch, "given": given, "out": out}
            return self._compute_several(extra, driver, shape, names, states, *wrenches, **settings)
        arrays, dtype, batch = self.check_states(names, states, *wrenches)
        numbers = math.prod(shape)
        rows = numbers + scratch
        if out is not None:
            check_out(out, (*batch, *shape), dtype, [*states, *wrenches])
        result = np.empty((*batch, *shape), dtype) if out is None else out
        samples, width = math.prod(batch), LANE_WIDTHS[dtype.name] if batch else 1
        if samples == 0:
            return result
        if batch:
            *arrays, found = [x.reshape(samples, x.size // samples) for x in (*arrays, result)]
        else:
            found = result.reshape(numbers)
        spare = self._spare_memory.setdefault((dtype.itemsize, width, rows), [])
        arguments = (*self.arrays(dtype), *given, *arrays, found)
        most_threads = 1 + samples * self.nv // threads.JOINTS_PER_THREAD
        new_memory = lambda: self.new_memory(dtype, width, rows)  # noqa: E731
        threads.run(driver, spare, new_memory, arguments, samples, width, most_threads)
        return result

    def _compute_several(
        self,
        extra: int,
        driver: Callable[..., Any],
        shape: tuple[int, ...],
        names: Sequence[str],
        states: Sequence[Any],
        *wrenches: Any,
        out: np.ndarray | None,
        **settings: Any,
    ) -> np.ndarray:
        """`compute` for several states of each varied sample, along `extra` axes behind those of the batch."""
        behind = len(self.batch_shape)
        arguments = [*states, *wrenches]
        # what has no axes of its own there is the same for all of them
        along = [x is not None and x.ndim - 1 - (i >= len(states)) == behind + extra for i, x in enumerate(arguments)]
        pairs = list(zip(arguments, along, strict=True))
        shapes = [x.shape[behind : behind + extra] for x, has in pairs if has]
        try:
            axes = np.broadcast_shapes(*shapes)
        except ValueError:
            raise StateError(f"the axes behind the batch {self.batch_shape}, {shapes}, do not fit") from None
        arguments = [
            np.broadcast_to(x, (*x.shape[:behind], *axes, *x.shape[behind + extra :])) if has else x for x, has in pairs
        ]
        result = np.empty((*self.batch_shape, *axes, *shape), precision_of([x for x in arguments if x is not None]))
        for index in np.ndindex(axes):
            place = (slice(None),) * behind + index
            one = [x[place] if has else x for x, has in zip(arguments, along, strict=True)]
            result[place] = self.compute(driver, shape, names, one[: len(states)], *one[len(states) :], **settings)
        return copied_to(out, result, [*states, *wrenches])

    def new_memory(self, dtype: np.dtype, width: int, rows: int) -> np.ndarray:
        """Working memory for a block of lanes and these rows of a driver's own."""
        return np.empty(memory_size(self.topology, rows, width, dtype.itemsize), dtype)

    def check_states(
        self,
        names: Sequence[str],
        states: Sequence[npt.ArrayLike],
        *wrenches: Any,
        of_samples: tuple[int, ...] | None = None,
    ) -> tuple[list[np.ndarray], np.dtype, tuple[int, ...]]:
        """State arguments ready for a driver: C-contiguous, of one precision and one batch shape.

        Returns the arrays in order, wrenches last if the driver takes them, as (..., 6 nv) or (..., 0); the precision;
        the shape of the batch, which is that of the model's samples, or else broadcasts with `of_samples`.
        """
        arrays = [as_array(name, x) for name, x in zip(names, states, strict=True)]
        trailing: list[tuple[int, ...]] = [
            self._position_shape if name in POSITIONS else self._velocity_shape for name in names
        ]
        loaded = len(wrenches) > 0 and wrenches[0] is not None
        if loaded:
            names, arrays = (*names, "wrenches"), [*arrays, as_array("wrenches", wrenches[0])]
            trailing = [*trailing, (len(self.dofs.counts), 6)]
        for name, x, own in zip(names, arrays, trailing, strict=True):
            if x.dtype.kind not in "fiu":
                raise StateError(f"{name} has type {x.dtype}; expected real numbers")
            if x.shape[max(0, x.ndim - len(own)) :] != own:
                raise StateError(f"{name} has shape {x.shape}; expected ({', '.join(['...', *map(str, own)])})")
            if name in POSITIONS and self._quaternions:
                self._check_quaternions(name, x)
        dtype = precision_of(arrays)
        batches = [x.shape[: x.ndim - len(own)] for x, own in zip(arrays, trailing, strict=True)]
        try:
            batch = np.broadcast_shapes(self.batch_shape if of_samples is None else of_samples, *batches)
        except ValueError:
            found = dict(zip(names, batches, strict=True))
            own_shape = f" and the model's, {self.batch_shape}" if self.batch_shape else ""
            raise StateError(f"the batch shapes {found}{own_shape}, do not fit; expected equal shapes, or 1") from None
        if not self._shared and of_samples is None and batch != self.batch_shape:
            raise StateError(
                f"the states are a batch {batch}; expected {self.batch_shape}, the batch of varied samples"
            )
        ready = []
        for x, own in zip(arrays, trailing, strict=True):
            # what fits is taken as it is: broadcast_to would make it read-only, and so have it copied
            whole = x if x.shape == batch + own else np.broadcast_to(x, batch + own)
            ready.append(np.require(whole, dtype, ("C", "A", "W")))
        if loaded:
            ready[-1] = self.to_dofs(ready[-1]).reshape(*batch, 6 * self.nv)
        elif wrenches:  # an array too, if an empty one: for None each driver would be compiled once more
            ready.append(np.empty((*batch, 0), dtype))
        return ready, dtype, batch

    def _check_quaternions(self, name: str, q: np.ndarray) -> None:
        """Refuse quaternions that are not of unit length; those that are not finite are left to the sample's status."""
        # a length off by x is a square off by 2 x
        allowed = 2.0 * UNIT_LENGTH.get(q.dtype, UNIT_LENGTH[FLOAT64])
        for at in self._quaternions:
            found = q[..., at : at + 4]
            square = np.einsum("...i,...i", found, found)
            bad = (abs(square - 1.0) > allowed) & np.isfinite(found).all(-1)
            if bad.any():
                sample = tuple(int(i) for i in np.argwhere(bad)[0])
                where = f" of sample {sample[0] if len(sample) == 1 else sample}" if sample else ""
                body = self.description.body_names[int(np.searchsorted(self.dofs.position_index, at, "right")) - 1]
                raise StateError(
                    f"{name}{where}: the quaternion of body {body!r}, {name}[{at}:{at + 4}], is "
                    f"{found[sample].tolist()}; expected [x, y, z, w] of length 1 to {allowed / 2:g}"
                )

    def to_dofs(self, of_bodies: np.ndarray) -> np.ndarray:
        """Values of bodies (..., n, m) as the kernels have them: (..., nv, m), zero but for each body's last dof."""
        if self.nv == self.n_bodies:
            return of_bodies
        of_dofs = np.zeros((*of_bodies.shape[:-2], self.nv, of_bodies.shape[-1]), of_bodies.dtype)
        of_dofs[..., self.dofs.last, :] = of_bodies
        return of_dofs

    def arrays(self, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray, Variation | None]:
        """Topology, parameters and variation for the drivers in one precision: all follow from the description."""
        if dtype.itemsize not in self._arrays:
            self._arrays[dtype.itemsize] = (self.topology, *self._converted(dtype, self.in_water))
        return self._arrays[dtype.itemsize]

    def parameters(self, dtype: np.dtype, in_water: bool) -> tuple[np.ndarray, Variation | None]:
        """Parameters and variation in one precision, with the columns of a model in water or without them."""
        return self.arrays(dtype)[1:] if in_water == self.in_water else self._converted(dtype, in_water)

    def _converted(self, dtype: np.dtype, in_water: bool) -> tuple[np.ndarray, Variation | None]:
        """Parameters and variation in one precision. Raises ModelError where they are beyond its range."""
        try:
            with np.errstate(over="raise", invalid="raise"):
                parameters, variation = parameters_of(self._description_of_first_sample, in_water), None
                if not self._shared:
                    variation = Variation(*variation_of(self.description, parameters, dtype, in_water))
                    parameters = parameters[..., None]
                return parameters.astype(dtype), variation
        except FloatingPointError:
            raise ModelError(
                f"model {self.description.name!r}: parameters, or products such as rotor_inertia gear_ratio^2, are "
                f"beyond the range of {dtype.name}; expected numbers up to {np.finfo(dtype).max:.1e} in size"
            ) from None

    @cached_property
    def _float64_arrays(self) -> tuple[np.ndarray, np.ndarray, Variation | None]:
        return self.arrays(FLOAT64)

    @property
    def _description_of_first_sample(self) -> Description:
        """The description with the fields that vary as the first sample has them."""
        first = {
            field: value.reshape(-1, *value.shape[value.ndim - len(axes) :])[0]
            for field, axes in VARIABLE_FIELDS.items()
            if (value := getattr(self.description, field)).ndim > len(axes)
        }
        return dataclasses.replace(self.description, **first)
