"""Model: the description of a mechanism with all methods. Its base classes contain the methods of one topic each."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy.typing as npt

from ..acting.shape_contacts import contacts
from ..analysis.equilibria import equilibrium
from ..analysis.frequency_responses import frequency_response
from ..analysis.linear_models import linearize
from ..analysis.margins import margins
from ..analysis.modes import modes
from ..codegen.generate import generate
from ..common.calls import explains_calls
from ..common.lock_free import cached_property
from ..common.misspelled import SuggestsAttributes
from ..common.pickles import PickledByName
from ..model.arguments import SampleSequence, check_sample_index
from ..model.description import indexed
from ..model.inertia import Inertia
from ..model.serial_chain import serial_chain_description
from ..simulate import simulation
from ..simulate.accelerations import accelerations
from ..simulate.stepping import stepper
from . import showing
from .actuation import Actuation
from .assembly import Assembly
from .between_bodies import ForcesBetweenBodies
from .constraints import Constraints
from .derivatives import Derivatives
from .dynamics import Dynamics
from .editing import Editing
from .identification import Identification
from .inverse_kinematics import InverseKinematics
from .jacobians import Jacobians
from .matrices import Matrices
from .motion import Motion
from .reactions import Reactions
from .sensing import Sensors
from .states import States
from .tangent_space import TangentSpace
from .varying import Varying
from .views import BodyView, JointView, Views, bodies_of, joints_of


class Model(
    States,
    TangentSpace,
    Dynamics,
    Constraints,
    Assembly,
    Reactions,
    ForcesBetweenBodies,
    Motion,
    Jacobians,
    InverseKinematics,
    Matrices,
    Derivatives,
    Identification,
    Actuation,
    Varying,
    Editing,
    SampleSequence,
    PickledByName,
    SuggestsAttributes,
):
    """A serial chain, tree or closed-loop mechanism of rigid bodies. Immutable; can be pickled.

    `ModelBuilder.build`, `rbchain.load` and `Model.serial_chain` return models. Bodies are numbered in the order in
    which they were added, parents first. A body on a fixed joint is merged into its parent body, and its name
    becomes a frame.

    The methods by topic; `help(rb.Model.simulate)` describes one of them:

    * Motion: `simulate`, `stepper`, `accelerations`
    * Contacts of the collision shapes: `contacts`
    * Linear analysis: `linearize`, `modes`, `frequency_response`, `margins`, `equilibrium`
    * Dynamics: `forward_dynamics`, `inverse_dynamics`, `hybrid_dynamics`
    * Forces: `bias_forces`, `gravity_forces`, `passive_forces`, `joint_reactions`
    * Derivatives: `forward_dynamics_derivatives`, `inverse_dynamics_derivatives`
    * Matrices: `mass_matrix`, `mass_matrix_inverse`, `solve_mass_matrix`, `coriolis_matrix`, `christoffel_symbols`,
      `centroidal_momentum_matrix`
    * Kinematics: `body_poses`, `body_velocities`, `body_accelerations`, `frame_poses`, `jacobian`,
      `jacobian_derivative`, `center_of_mass`, `inverse_kinematics`
    * Energy and momentum: `energy`, `elastic_energy`, `momentum`, `power`, `force_balance_residual`
    * Springs between bodies: `wrenches_between_bodies`, `derivatives_between_bodies`
    * Closed loops: `assemble`, `assemble_velocities`, `constraint_residual`, `constraint_jacobian`,
      `constraint_forces`
    * States: `neutral`, `random_state`, `integrate`, `difference`, `joint_order`
    * Other parameters: `vary`, `replace`, `with_payload`, `with_motor`
    * Other mechanisms: `serial_chain`, `lock`, `lock_state`, `reroot`, `reroot_state`, `open_tree`
    * Drives: `with_inputs`, `hard_stops`, `dry_friction`
    * Identification: `base_parameters`, `inverse_dynamics_regressor`, `kinetic_energy_regressor`,
      `potential_energy_regressor`
    * Source code and images: `generate`, `view`, `picture`

    States are positions `(nq,)` and velocities, accelerations or forces `(nv,)`, or batches of them, `(..., nq)` and
    `(..., nv)`. They are float64, or float32: if all arguments are float32, so are the calculation and the results. nq
    and nv differ only because of the quaternions of free and spherical joints. Results have the shape of the batch.
    Methods are generalized ufuncs of NumPy: `forward_dynamics` has the signature (nq), (nv), (nv) -> (nv). The other
    axes of all arguments broadcast, and the batch of the model counts as one more argument.

    If a sample of a batch cannot be computed, its results are NaN, and other samples are unaffected. The cause can be
    a singular configuration, a body without inertia, or a state that is not finite. All accelerations of the sample,
    and all entries of inverse matrices, are then NaN. Of its other results, only the entries that depend on the value
    that is not finite are NaN.

    Attributes
    ----------
    name, body_names, joint_names, joint_types
        Names; joint types are "revolute", "prismatic", "screw", "free", "spherical", "planar", "universal" or
        "composite".
    nq, nv, n_bodies : int
        Numbers of positions, velocities (degrees of freedom) and moving bodies. n stands for n_bodies in shapes.
    position_index, velocity_index : (n,) arrays of int
        First index of each body's joint in q and in qd.
    position_labels, velocity_labels, position_units, velocity_units : tuple of str
        Name and unit of each entry of q and qd.
    coordinate_pairs : tuple of pairs of int
        Pairs (i, j), for which qd[j] is the velocity of q[i]. Entries of quaternions have no pair.
    body, joint : mappings
        Views of the bodies and joints by their names, such as `model.body["link2"].mass`.
    nominal : Model
        The model before `vary` and `with_payload` changed its parameters. Controllers use it by default.
    dof_types : tuple
        Type of each degree of freedom: "revolute", "prismatic" or "screw".
    batch_shape : tuple
        Shape of the batch of samples whose parameters differ; () if all samples share them (see `vary`).
    parent : (n,) array
        Index of each body's parent; -1 for the world.
    placement_rotation, placement_translation : (n, 3, 3), (n, 3) arrays, m
        Pose of each joint in the parent's frame at q = 0.
    axis, pitch : (nv, 3), (nv,) arrays
        Unit axis of each degree of freedom in the body's frame at q = 0; pitch of a screw in m/rad.
    rotor_inertia, gear_ratio, armature : (nv,) arrays, kg m^2 (kg if prismatic), 1, kg m^2 (kg)
        Actuator of each degree of freedom; armature = rotor_inertia gear_ratio^2 is the inertia reflected to the joint.
    stiffness, rest_position, cubic_stiffness, damping : (nv,) arrays
    friction, static_friction, stribeck_velocity, friction_velocity, friction_asymmetry : (nv,) arrays
    stop_lower, stop_upper, limit_stiffness, limit_damping : (nv,) arrays
        The fields of `PassiveForces`, of each degree of freedom.
    position_limits, velocity_limit, effort_limit : (nv, 2), (nv,), (nv,) arrays
    acceleration_limit, deceleration_limit, jerk_limit : (nv,) arrays
        The fields of `JointLimits`. rbchain stores these limits but does not enforce them.
    fluid_density, volume, buoyancy_center, added_mass, added_volume, linear_damping, quadratic_damping, strip_drag
        The density of the fluid, and the fields of `Immersion` of each body. Added masses refer to the origin of the
        body's frame.
    mass, cg, inertia : (n,), (n, 3), (n, 3, 3) arrays, kg, m, kg m^2
        Values of each body, in body axes. The tensor is about the cg.
    inertial_parameters : (10 n,) array
        Mass, mass times cg and inertia tensor about the origin of the frame of each body.
    in_water : bool
        Whether a fluid acts on any body.
    gravity : (3,) array, m/s^2
        Gravitational acceleration in world axes.
    fixed_frames : dict
        Name of each frame on a fixed joint, with the index of the body that it is fixed to (-1: the world).
    visuals : dict
        Shapes (a tuple of `Visual`) of each body or frame that has any.
    collisions : dict
        Shapes (a tuple of `CollisionShape`) of each body or frame that has any. They collide only through `contacts`.
    bodies_without_inertia : tuple
        Names of the bodies whose motion is not resisted by any mass, inertia or rotor, in any configuration and in
        every sample. Forces do not determine their accelerations. `forward_dynamics`, `simulate` and all methods that
        use the inverse of the mass matrix raise an error for such a model. Kinematics and inverse dynamics work.
    constraint_names : tuple
        Names of the constraints; c is their number. An open tree has none.
    constraint_names_of_rows : tuple
        Name of the constraint of each row of `constraint_residual`.
    constraint_point_a, constraint_point_b : (c, 3) arrays, m
        Points of the constraints, in the frames of their moving bodies or of the world.
    constraint_axes_a, constraint_axes_b : (c, 3, 3) arrays
        Rotations from the axes of the constraints to the axes of these bodies. The z axis is the axis of a hinge.
    constraint_length, constraint_ratio, constraint_offset : (c,) arrays, m; 1, m/rad or rad/m; rad or m
        Length of a `DistanceConstraint`; ratio and offset of a `CouplerConstraint`. Other constraints do not use them.
    constraint_compliance, constraint_angular_compliance, constraint_relaxation_time : (c,) arrays, m/N; rad/(N m); s
        Parameters of compliant constraints; 0 for rigid constraints.
    drives : tuple
        The drives in the model's file or from `ModelBuilder.add_drive`. `simulate` applies them unless it is called
        with other `drives`.
    inputs : dict
        Values of the inputs of `drives`, by their names: the controls of an MJCF file.
    sensors : mapping
        The sensors of an MJCF file, by their names. `model.sensors.of(motion)` computes their measurements.
    keyframes : dict
        The keyframes of an MJCF file, by their names, with `q`, `qd` and `inputs`.

    Arrays are read-only. A field given to `vary` has the batch axes first.
    """

    renamed_attributes: ClassVar[dict[str, str]] = {
        "of_sample": "model[i]",
        "lower_limit": "stop_lower",
        "upper_limit": "stop_upper",
    }
    foreign_attributes: ClassVar[dict[str, str]] = {
        "nbody": "n_bodies",
        "nbodies": "n_bodies",
        "njoints": "len(model.joint_names)",
        "njnt": "len(model.joint_names)",
        "ndof": "nv",
        "n_dofs": "nv",
        "body_mass": "mass",
        "body_inertia": "inertia",
        "dof_damping": "damping",
        "jnt_range": "position_limits",
        "lowerPositionLimit": "position_limits",
        "upperPositionLimit": "position_limits",
        "qpos0": "neutral()",
        "nframes": "len(model.fixed_frames)",
        "forward_kinematics": "body_poses or frame_poses",
        "fk": "body_poses or frame_poses",
        "ik": "inverse_kinematics",
        "solve_ik": "inverse_kinematics",
        "jac": "jacobian",
        "coriolis": "coriolis_matrix or bias_forces",
        "gravity_compensation": "gravity_forces",
        "from_urdf": "rb.load",
        "from_sdf": "rb.load",
        "rnea": "inverse_dynamics",
        "aba": "forward_dynamics",
        "crba": "mass_matrix",
        "step": "simulate or stepper",
    }

    @classmethod
    @explains_calls(is_method=True)
    def serial_chain(
        cls,
        n: int,
        *,
        length: float = 0.25,
        mass: float = 0.1,
        inertia: Inertia | None = None,
        gravity: npt.ArrayLike = (0.0, -10.0, 0.0),
        name: str = "chain",
    ) -> Self:
        """Make a serial chain of n equal links along x, which all turn about z.

        Parameters
        ----------
        n : int
            Number of links.
        length, mass : float, m, kg
            Length and mass of each link, which is a thin rod with its cg in the middle.
        inertia : Inertia, optional
            Inertia of each link, instead of the inertia of a thin rod.
        gravity : (3,) array, m/s^2
            In world axes. The default is along -y, so the links swing about their z axes. The default of `ModelBuilder`
            and of files, (0, 0, -9.81), is parallel to these axes and would not move the links.
        name : str
            Name of the model.

        Returns
        -------
        Model

        Raises
        ------
        ModelError
            If a value is invalid, such as a length of zero or a negative mass.

        Examples
        --------
        >>> import rbchain as rb
        >>> chain = rb.Model.serial_chain(6)
        >>> float(chain.forward_dynamics([0.0] * 6, [0.0] * 6, [0.0] * 6)[0].round(6))
        -50.717987
        """
        return cls(serial_chain_description(n, length, mass, inertia, gravity, name))

    def __getitem__(self, samples: Any) -> Model:
        """Return the model of one sample of the batch, or of several.

        Parameters
        ----------
        samples : int, slice, array of int or bool, None, Ellipsis, or tuple of these
            The index in the batch, as for a NumPy array of this shape. `model[..., None]` has an axis of length 1
            after the batch, and so takes several states of each sample, such as the `q` of a trajectory. Without a
            batch, only `model[..., None]` is possible. It returns the model itself.

        Raises
        ------
        ArgumentError
            If the batch has no such sample, or if this model is not a batch.

        Examples
        --------
        >>> import rbchain as rb
        >>> many = rb.Model.serial_chain(1).vary(mass=[[1.0], [2.0], [3.0]])
        >>> many[1].mass.tolist(), many[1:].mass.tolist(), len(many)
        ([2.0], [[2.0], [3.0]], 3)
        >>> motion = many.simulate(duration=0.1)
        >>> many[..., None].energy(motion.q, motion.qd)[0].shape
        (3, 101)
        """
        by_name = "model.body[{0!r}] or model.joint[{0!r}]"
        check_sample_index(samples, self.batch_shape, has_new_axes=True, by_name=by_name)
        if not self.batch_shape:
            return self
        if isinstance(samples, tuple) and len(samples) == 2 and samples[0] is ... and samples[1] is None:
            return self._with_axis_of_states
        return Model(indexed(self.description, samples))

    @cached_property
    def _with_axis_of_states(self) -> Model:
        """This model with an axis after its batch, which is used repeatedly for parts of a trajectory."""
        kernel_model = self.kernel_model.with_axis_of_states
        return self._of(kernel_model.description, kernel_model)

    @property
    def sensors(self) -> Sensors:
        """The sensors of an MJCF file by their names; `model.sensors.of(motion)` computes their measurements."""
        return Sensors(self)

    @property
    def body(self) -> Views[BodyView]:
        """The bodies by their names.

        Examples
        --------
        >>> import rbchain as rb
        >>> arm = rb.Model.serial_chain(3, mass=0.5)
        >>> float(arm.body["link2"].mass), arm.body["link2"].parent, list(arm.body)
        (0.5, 'link1', ['link1', 'link2', 'link3'])
        """
        return bodies_of(self)

    @property
    def joint(self) -> Views[JointView]:
        """The joints by their names.

        Examples
        --------
        >>> import rbchain as rb
        >>> arm = rb.Model.serial_chain(3)
        >>> arm.joint["link2"].damping.tolist(), arm.joint["link2"].dofs, arm.joint["link2"].type
        ([0.0], 1, 'revolute')
        """
        return joints_of(self)

    @cached_property
    def nominal(self) -> Model:
        """The nominal model: the model before `vary` and `with_payload` changed parameters; this model if they did not.

        Controllers (`PID`, `ComputedTorque`) use it by default.

        Examples
        --------
        >>> import rbchain as rb
        >>> arm = rb.Model.serial_chain(1, mass=3.0)
        >>> arm.vary(mass=[[2.0], [4.0]]).nominal.mass.tolist()
        [3.0]
        """
        return self if self.description.nominal is None else Model(self.description.nominal)

    simulate = simulation.simulate
    stepper = stepper
    accelerations = accelerations
    contacts = contacts
    equilibrium = equilibrium
    linearize = linearize
    modes = modes
    frequency_response = frequency_response
    margins = margins
    generate = generate
    view = showing.view
    picture = showing.picture

    def __getstate__(self) -> dict[str, Any]:
        return {"description": self.description}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["description"])  # type: ignore[misc]

    def _repr_html_(self) -> str:
        from ..plots.notebook import html_of

        return html_of(self)

    def __repr__(self) -> str:
        batch = f", batch_shape={self.batch_shape}" if self.batch_shape else ""
        return f"Model({self.name!r}, n_bodies={self.n_bodies}{batch})"
