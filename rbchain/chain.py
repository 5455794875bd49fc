"""Model: a mechanism, and everything that is computed of it. Checks arguments, then makes one driver call."""

import dataclasses
import math
from functools import cached_property

import numpy as np

from . import simulation
from .core.lanes import LANE_WIDTHS
from .core.layout import Variation
from .drivers import cpu, threads
from .drivers.blocks import memory_size
from .drivers.cpu import MOST_ROWS_PER_BODY
from .errors import ModelError, StateError
from .model import validation
from .model.description import VARIABLE_FIELDS, Description
from .model.flatten import batch_shape_of, joint_aligned_axes, parameters_of, topology_of, variation_of
from .model.inertia import Inertia
from .model.joint import Revolute
from .model.pose import Pose, numbers, vector3

ndarray = np.ndarray
FLOAT64, FLOAT32 = np.dtype(np.float64), np.dtype(np.float32)


class Model:
    """A serial chain or open tree of rigid bodies. Immutable; can be pickled.

    Made by `ModelBuilder.build`, `rbchain.load` or `Model.serial_chain`. Bodies are numbered as they were added,
    parents first. A body on a fixed joint is part of the body that carries it, and its name that of a frame.

    Every state argument is one state `(n,)` or a batch `(..., n)`, of float64; if all are float32, the calculation and
    its results are. Results have the batch's shape. Inside a batch, a chain that cannot be computed (a singular
    mechanism, a state that is not finite) gets NaN; its neighbours are not affected.

    Attributes
    ----------
    name, body_names, joint_names, joint_types
        Names; joint types are "revolute", "prismatic" or "screw".
    nq, nv, n_bodies : int
        Numbers of positions, velocities and moving bodies.
    batch_shape : tuple
        Shape of the batch of chains whose parameters differ; () if they are shared (see `vary`).
    parent : (n,) array
        Number of each body's parent; -1 for a body that hangs on the world.
    placement_rotation, placement_translation : (n, 3, 3), (n, 3) arrays, m
        Pose of each joint in the parent's frame at q = 0.
    axis, pitch : (n, 3), (n,) arrays
        Unit axis of each joint in the body's frame; pitch of a screw in m/rad.
    mass, cg, inertia : (n,), (n, 3), (n, 3, 3) arrays, kg, m, kg m^2
        Of each body, in body axes; the tensor is about the cg.
    gravity : (3,) array, m/s^2
        In world axes.
    fixed_frames : dict
        Frames on fixed joints by name, each with the number of the body it is fixed to (-1: the world).

    Arrays are read-only; a field given to `vary` has the batch's axes in front.
    """

    def __init__(self, description: Description):
        self._description = description
        self._n = len(description.body_names)
        self._state_shape = (self._n,)
        self._topology = topology_of(description)
        for field in ("parent", *VARIABLE_FIELDS):
            getattr(description, field).flags.writeable = False
        self._shared = self.batch_shape == ()
        self._arrays, self._spare_memory, self._spare_for_one = {}, {}, []

    # --- what the model is --------------------------------------------------------------------------------------------

    name = property(lambda self: self._description.name)
    body_names = property(lambda self: self._description.body_names)
    joint_names = property(lambda self: self._description.joint_names)
    joint_types = property(lambda self: self._description.joint_types)
    parent = property(lambda self: self._description.parent)
    placement_rotation = property(lambda self: self._description.placement_rotation)
    placement_translation = property(lambda self: self._description.placement_translation)
    axis = property(lambda self: self._description.axis)
    pitch = property(lambda self: self._description.pitch)
    mass = property(lambda self: self._description.mass)
    cg = property(lambda self: self._description.cg)
    inertia = property(lambda self: self._description.inertia)
    gravity = property(lambda self: self._description.gravity)
    nq = nv = n_bodies = property(lambda self: self._n)

    @property
    def fixed_frames(self):
        """Names of the frames on fixed joints, each with the number of the body it is fixed to (-1: the world)."""
        return {name: frame.body for name, frame in self._description.frames.items()}

    @cached_property
    def batch_shape(self):
        return batch_shape_of(self._description)

    @classmethod
    def serial_chain(cls, n, *, length=0.25, mass=0.1, inertia=None, gravity=(0.0, -10.0, 0.0), name="chain"):
        """The classical benchmark: n equal links in a row, each a thin rod along x that turns about z.

        Parameters
        ----------
        n : int
            Number of links.
        length, mass : float, m, kg
            Of each link; its cg is halfway.
        inertia : Inertia, optional
            Of each link, if it is not such a rod.
        gravity : (3,) array, m/s^2

        Examples
        --------
        >>> import rbchain as rb
        >>> chain = rb.Model.serial_chain(6)
        >>> float(chain.forward_dynamics([0.0] * 6, [0.0] * 6, [0.0] * 6)[0].round(6))
        -50.717987
        """
        if not isinstance(n, (int, np.integer)) or n < 1:
            raise ModelError(f"n is {n!r}; expected a whole number of links, at least 1")
        length = float(numbers(length, "length"))
        link = Inertia.rod(length, mass=mass, cg=(length / 2, 0, 0)) if inertia is None else inertia
        names = tuple(f"link{i + 1}" for i in range(n))
        validation.check_mass(names[:1], np.array([link.mass]))
        validation.check_finite(names[:1], "cg", link.cg[None], 1)
        validation.check_inertia(names[:1], link.inertia[None])
        offsets = np.zeros((n, 3))
        offsets[1:, 0] = length
        return cls(
            Description(
                name=name,
                body_names=names,
                joint_names=names,
                joint_types=(Revolute.kind,) * n,
                parent=np.arange(-1, n - 1),
                placement_rotation=np.tile(np.eye(3), (n, 1, 1)),
                placement_translation=offsets,
                axis=np.tile([0.0, 0.0, 1.0], (n, 1)),
                pitch=np.zeros(n),
                mass=np.full(n, link.mass),
                cg=np.tile(link.cg, (n, 1)),
                inertia=np.tile(link.inertia, (n, 1, 1)),
                gravity=vector3(gravity, "gravity"),
                frames={},
                nonphysical_inertia="refuse",
            )
        )

    def vary(self, **fields):
        """A model of a batch of chains that differ in some of their parameters.

        Parameters
        ----------
        **fields
            New values of any of `mass`, `cg`, `inertia`, `placement_rotation`, `placement_translation`, `axis`, `pitch`
            and `gravity`, each with the shape of the attribute of that name, or with the batch's axes in front of it.
            An inertia may also be (..., n, 6): xx, xy, xz, yy, yz, zz. Fields with batch axes must agree in them.
            Each field is taken as it is given: a new mass leaves the inertia as it was.

        Returns
        -------
        Model
            Its `batch_shape` is that of the fields. States given to it are one for all chains, one of each chain, or
            (but to `simulate`) several of each, along further axes behind the batch's.

        Examples
        --------
        A thousand pendulums, each with its own mass at its own distance:

        >>> import numpy as np, rbchain as rb
        >>> pendulum = rb.Model.serial_chain(1)
        >>> rng = np.random.default_rng(0)
        >>> many = pendulum.vary(mass=rng.uniform(1, 2, (1000, 1)), cg=rng.uniform(0.1, 0.3, (1000, 1, 3)))
        >>> many.forward_dynamics(np.zeros((1000, 1)), np.zeros((1000, 1)), np.zeros((1000, 1))).shape
        (1000, 1)
        """
        changed = {name: self._varied_field(name, value) for name, value in fields.items()}
        batches = {
            name: value.shape[: value.ndim - len(VARIABLE_FIELDS[name])]
            for name in VARIABLE_FIELDS
            if (value := changed.get(name, getattr(self, name))).ndim > len(VARIABLE_FIELDS[name])
        }
        if len(set(batches.values())) > 1:
            raise ModelError(f"fields differ in their batch axes: {batches}; expected the same for all")
        new = dataclasses.replace(self._description, **changed)
        return Model(new)

    def _varied_field(self, name, value):
        """One field for `vary`: a private copy of the right shape."""
        if name not in VARIABLE_FIELDS:
            raise ModelError(
                f"{name!r} is no field that chains may differ in; expected some of {list(VARIABLE_FIELDS)}"
            )
        try:
            n, value = self.n_bodies, np.array(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise ModelError(f"{name} is {value!r}; expected an array of real numbers") from None
        trailing = tuple(n if axis == "n" else axis for axis in VARIABLE_FIELDS[name])
        if name == "inertia" and value.shape[-3:] != trailing and value.shape[-2:] == (n, 6):
            value = value[..., [0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(*value.shape[:-1], 3, 3)
        if value.shape[max(0, value.ndim - len(trailing)) :] != trailing:
            expected = ", ".join(["...", *map(str, trailing)])
            raise ModelError(f"{name} has shape {value.shape}; expected ({expected})")
        if name == "gravity":
            bad = np.argwhere(~np.isfinite(value).all(-1))
            if bad.size or not np.isfinite(value).all():
                where = f" of chain {bad[0].tolist() if bad[0].size > 1 else bad[0][0]}" if value.ndim > 1 else ""
                raise ModelError(f"gravity{where} is not finite; expected finite numbers")
            return value
        validation.check_finite(self.body_names, name, value, len(trailing) - 1)
        if name == "mass":
            validation.check_mass(self.body_names, value)
        if name == "inertia":
            validation.check_symmetric(self.body_names, value)
            if self._description.nonphysical_inertia == "refuse":
                validation.check_inertia(self.body_names, value)
        if name == "pitch" and "screw" not in self.joint_types:
            raise ModelError(f"pitch cannot vary: no joint is a screw, they are {sorted(set(self.joint_types))}")
        if name == "axis":
            return validation.check_axes(self.body_names, value)
        if name == "placement_rotation":
            validation.check_rotations(self.body_names, value)
        return value

    # --- dynamics -----------------------------------------------------------------------------------------------------

    def forward_dynamics(self, q, qd, tau, wrenches=None):
        """Accelerations of the joints under given joint forces, by the articulated-body algorithm.

        Parameters
        ----------
        q, qd : (..., n) arrays, rad or m, and per second
        tau : (..., n) array, N m or N
            Forces of the joints' motors; of a screw, moment + pitch times force along the axis.
        wrenches : (..., n, 6) array, N and N m, optional
            External load on each body: force, then moment about the origin of the body's frame, both in world axes.

        Returns
        -------
        (..., n) array, rad/s^2 or m/s^2

        Raises
        ------
        StateError
            If a shape does not fit.

        References
        ----------
        Featherstone (2008), *Rigid Body Dynamics Algorithms*, section 7.3.

        Examples
        --------
        A rod hinged at its end and held level falls with 3 g / (2 l):

        >>> import rbchain as rb
        >>> rod = rb.Model.serial_chain(1, length=0.25, gravity=(0, -10, 0))
        >>> rod.forward_dynamics([0.0], [0.0], [0.0])
        array([-60.])
        """
        return self._compute(cpu.forward_dynamics, self._n, ("q", "qd", "tau"), (q, qd, tau), wrenches)

    def inverse_dynamics(self, q, qd, qdd, wrenches=None):
        """Joint forces that give the accelerations `qdd`, by the recursive Newton-Euler algorithm.

        Parameters and result as for `forward_dynamics`, with `qdd` and `tau` exchanged.

        References
        ----------
        Luh, Walker and Paul (1980); Featherstone (2008), section 5.3.

        Examples
        --------
        Holding a level rod takes m g l / 2:

        >>> import rbchain as rb
        >>> rod = rb.Model.serial_chain(1, length=0.5, mass=2.0, gravity=(0, -10, 0))
        >>> rod.inverse_dynamics([0.0], [0.0], [0.0])
        array([5.])
        """
        return self._compute(cpu.inverse_dynamics, self._n, ("q", "qd", "qdd"), (q, qd, qdd), wrenches)

    def force_balance_residual(self, q, qd, tau, wrenches=None):
        """What is left of the balance of forces on each body when `forward_dynamics` has found the motion.

        The force through the joint as the articulated-body algorithm has it, f = IA a + pA, along the joint's axis just
        what the motor gives, against Newton and Euler for the body alone: f - sum of the children's f
        - (I a + v x* I v - wrench). Zero but for rounding: the solver's own proof of its answer.

        Returns
        -------
        (..., n, 6) array, N and N m
            Force, then moment about the origin of the body's frame, in world axes.

        Examples
        --------
        >>> import numpy as np, rbchain as rb
        >>> chain = rb.Model.serial_chain(6)
        >>> bool(np.abs(chain.force_balance_residual(np.ones(6), np.ones(6), np.zeros(6))).max() < 1e-13)
        True
        """
        n = self.n_bodies
        residual = self._compute(cpu.force_balance, 6 * n, ("q", "qd", "tau"), (q, qd, tau), wrenches)
        return residual.reshape(*residual.shape[:-1], n, 6)[..., [3, 4, 5, 0, 1, 2]]

    def energy(self, q, qd):
        """Kinetic and potential energy.

        Returns
        -------
        kinetic, potential : (...) arrays, J
            The potential energy is - sum of m g . c, zero with all centres of gravity at the world's origin.

        Examples
        --------
        >>> import rbchain as rb
        >>> kinetic, potential = rb.Model.serial_chain(1, length=1.0, mass=3.0).energy([0.0], [2.0])
        >>> float(kinetic), float(potential)
        (2.0, 0.0)
        """
        kinetic_potential = self._compute(cpu.energy, 2, ("q", "qd"), (q, qd))
        return kinetic_potential[..., 0], kinetic_potential[..., 1]

    def body_poses(self, q):
        """Poses of all moving bodies in the world.

        Returns
        -------
        Pose
            `translation` (..., n, 3) in m, `rotation` (..., n, 3, 3).

        Examples
        --------
        >>> import rbchain as rb
        >>> rb.Model.serial_chain(2, length=0.25).body_poses([0.0, 1.0]).translation.tolist()
        [[0.0, 0.0, 0.0], [0.25, 0.0, 0.0]]
        """
        poses = self._compute(cpu.body_poses, cpu.POSE_NUMBERS * self.n_bodies, ("q",), (q,))
        poses = poses.reshape(*poses.shape[:-1], self.n_bodies, cpu.POSE_NUMBERS)
        back = np.swapaxes(joint_aligned_axes(self.axis), -1, -2).astype(poses.dtype)
        return Pose.computed(poses[..., :3], poses[..., 3:].reshape(*poses.shape[:-1], 3, 3) @ back)

    def frame_poses(self, q, frame):
        """Pose in the world of one frame: a moving body's, or a body's on a fixed joint.

        Returns
        -------
        Pose
            `translation` (..., 3) in m, `rotation` (..., 3, 3).
        """
        if frame in self.body_names:
            bodies, i = self.body_poses(q), self.body_names.index(frame)
            return Pose.computed(bodies.translation[..., i, :], bodies.rotation[..., i, :, :])
        if frame not in self._description.frames:
            raise ModelError(f"no frame {frame!r}; the model has {[*self.body_names, *self.fixed_frames]}")
        fixed = self._description.frames[frame]
        if fixed.body >= 0:
            carrier = self.frame_poses(q, self.body_names[fixed.body])
            dtype = carrier.translation.dtype
            pose = Pose.computed(fixed.pose.translation.astype(dtype), fixed.pose.rotation.astype(dtype))
            return carrier @ pose
        _, dtype, batch = self._checked(("q",), (q,))
        translation = np.broadcast_to(fixed.pose.translation, (*batch, 3)).astype(dtype)
        return Pose.computed(translation, np.broadcast_to(fixed.pose.rotation, (*batch, 3, 3)).astype(dtype))

    simulate = simulation.simulate

    # --- arguments and calls ------------------------------------------------------------------------------------------

    def _compute(self, driver, numbers, names, states, *wrenches):
        """Check the arguments, call a driver, and return its `numbers` per chain, (..., numbers).

        `wrenches` are given, or None, if the driver takes them.
        """
        if self._shared and (not wrenches or wrenches[0] is None):
            # a single state as it should be takes no detour: beside the dynamics of one chain, every check counts
            shape = self._state_shape
            for x in states:
                if type(x) is not ndarray or x.dtype is not FLOAT64 or x.shape != shape or not x.flags.carray:
                    break
            else:
                result, spare = np.empty(numbers), self._spare_for_one
                try:
                    memory = spare.pop()
                except IndexError:
                    memory = self._new_memory(FLOAT64, 1)
                driver(memory, *self._float64_arrays, *states, *wrenches, result, 0, 1)
                spare.append(memory)
                return result
        extra = max(np.ndim(x) for x in states) - 1 - len(self.batch_shape)
        if not self._shared and extra > 0:
            return self._compute_several(extra, driver, numbers, names, states, *wrenches)
        arrays, dtype, batch = self._checked(names, states, *wrenches)
        result = np.empty((*batch, numbers), dtype)
        chains, width = math.prod(batch), LANE_WIDTHS[dtype.name] if batch else 1
        if chains == 0:
            return result
        if batch:
            *arrays, rows = [None if x is None else x.reshape(chains, x.size // chains) for x in (*arrays, result)]
        else:
            rows = result
        spare = self._spare_memory.setdefault((dtype.itemsize, width), [])
        arguments = (*self._arrays_in(dtype), *arrays, rows)
        most_threads = 1 + chains * self._n // threads.JOINTS_PER_THREAD
        threads.run(driver, spare, lambda: self._new_memory(dtype, width), arguments, chains, width, most_threads)
        return result

    def _compute_several(self, extra, driver, numbers, names, states, *wrenches):
        """`_compute` for several states of each varied chain, along `extra` axes behind those of the batch."""
        behind = len(self.batch_shape)
        arguments = [None if x is None else np.asarray(x) for x in (*states, *wrenches)]
        # what has no axes of its own there is the same for all of them
        along = [x is not None and x.ndim - 1 - (i >= len(states)) == behind + extra for i, x in enumerate(arguments)]
        axes = next(x.shape[behind : behind + extra] for x, has in zip(arguments, along, strict=True) if has)
        results = []
        for index in np.ndindex(axes):
            one = [x[(slice(None),) * behind + index] if has else x for x, has in zip(arguments, along, strict=True)]
            results.append(self._compute(driver, numbers, names, one[: len(states)], *one[len(states) :]))
        return np.stack(results, behind).reshape(*self.batch_shape, *axes, numbers)

    def _new_memory(self, dtype, width):
        """Working memory for a block of lanes, enough for any driver."""
        return np.empty(memory_size(self._topology, MOST_ROWS_PER_BODY * self.n_bodies, width, dtype.itemsize), dtype)

    def _checked(self, names, states, *wrenches):
        """State arguments ready for a driver: C-contiguous, of one precision and one batch shape.

        Returns the arrays in order, wrenches last if the driver takes them, as (..., 6 n) or None; the precision; the
        shape of the batch.
        """
        shape = self._state_shape
        arrays, trailing = [], [shape] * len(states)
        for name, x in zip(names, states, strict=True):
            try:
                arrays.append(np.asarray(x))
            except ValueError as error:
                raise StateError(f"{name} is no array of numbers: {error}") from None
        loaded = len(wrenches) > 0 and wrenches[0] is not None
        if loaded:
            names, arrays, trailing = (*names, "wrenches"), [*arrays, np.asarray(wrenches[0])], [*trailing, (*shape, 6)]
        for name, x, own in zip(names, arrays, trailing, strict=True):
            if x.dtype.kind not in "fiu":
                raise StateError(f"{name} has type {x.dtype}; expected real numbers")
            if x.shape[max(0, x.ndim - len(own)) :] != own:
                raise StateError(f"{name} has shape {x.shape}; expected ({', '.join(['...', *map(str, own)])})")
        dtype = FLOAT32 if all(x.dtype == FLOAT32 for x in arrays) else FLOAT64
        batches = [x.shape[: x.ndim - len(own)] for x, own in zip(arrays, trailing, strict=True)]
        try:
            batch = np.broadcast_shapes(self.batch_shape, *batches)
        except ValueError:
            found = dict(zip(names, batches, strict=True))
            raise StateError(f"the batch shapes {found} and the model's, {self.batch_shape}, do not fit") from None
        if not self._shared and batch != self.batch_shape:
            raise StateError(f"the states are a batch {batch}; expected {self.batch_shape}, the batch of varied chains")
        ready = []
        for x, own in zip(arrays, trailing, strict=True):
            # what fits is taken as it is: broadcast_to would make it read-only, and so have it copied
            whole = x if x.shape == batch + own else np.broadcast_to(x, batch + own)
            ready.append(np.require(whole, dtype, "CAW"))
        if loaded:
            ready[-1] = ready[-1].reshape(*batch, 6 * self.n_bodies)
        else:
            ready.extend(wrenches)
        return ready, dtype, batch

    def _arrays_in(self, dtype):
        """Topology, parameters and variation for the drivers in one precision: all follow from the description."""
        if dtype.itemsize not in self._arrays:
            parameters, variation = self._shared_parameters.copy(), None
            if not self._shared:
                entries, values = variation_of(self._description, parameters, dtype)
                variation, parameters = Variation(entries, values), parameters[..., None]
            self._arrays[dtype.itemsize] = (self._topology, parameters.astype(dtype), variation)
        return self._arrays[dtype.itemsize]

    @cached_property
    def _float64_arrays(self):
        return self._arrays_in(FLOAT64)

    @cached_property
    def _shared_parameters(self):
        """Parameters of all chains but for what varies, which is that of the first chain here."""
        first = {
            field: value.reshape(-1, *value.shape[value.ndim - len(axes) :])[0]
            for field, axes in VARIABLE_FIELDS.items()
            if (value := getattr(self, field)).ndim > len(axes)
        }
        return parameters_of(dataclasses.replace(self._description, **first))

    def __reduce__(self):
        return Model, (self._description,)

    def __repr__(self):
        batch = f", batch_shape={self.batch_shape}" if self.batch_shape else ""
        return f"Model({self.name!r}, n_bodies={self.n_bodies}{batch})"
