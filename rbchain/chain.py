"""Model: the facade. A state enters rbchain here; the methods that take states are in `quantities` and `simulation`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self, SupportsIndex

import numpy.typing as npt

from . import simulation
from .arguments import check_sample_index
from .codegen.generate import generate
from .lock_free import cached_property
from .misspelt import SuggestsAttributes
from .model.description import VARIABLE_FIELDS, Description
from .model.inertia import Inertia
from .model.payload import fields_with_payload
from .model.serial_chain import serial_chain_description
from .model.varied_fields import varied_description
from .quantities.derivatives import Derivatives
from .quantities.dynamics import Dynamics
from .quantities.identification import Identification
from .quantities.jacobians import Jacobians
from .quantities.matrices import Matrices
from .quantities.motion import Motion
from .quantities.reactions import Reactions
from .quantities.states import States
from .quantities.tangent_space import TangentSpace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .view.viewer import Viewer


class Model(
    States,
    TangentSpace,
    Dynamics,
    Reactions,
    Motion,
    Jacobians,
    Matrices,
    Derivatives,
    Identification,
    SuggestsAttributes,
):
    """A serial chain or open tree of rigid bodies. Immutable; can be pickled.

    Made by `ModelBuilder.build`, `rbchain.load` or `Model.serial_chain`. Bodies are numbered as they were added,
    parents first. A body on a fixed joint is part of the body that carries it, and its name that of a frame.

    Every state argument is one state, positions `(nq,)`, velocities, accelerations and forces `(nv,)`, or a batch of
    them, `(..., nq)` and `(..., nv)`, of float64; if all are float32, the calculation and its results are. nq and nv
    differ only by the quaternions of free and spherical joints. Results have the batch's shape. Inside a batch, a
    sample that cannot be computed (a singular position, a sample without inertia, a state that is not finite) gets NaN,
    accelerations and inverses as a whole, other results where they depend on what is not finite; its neighbours are not
    affected.

    Attributes
    ----------
    name, body_names, joint_names, joint_types
        Names; joint types are "revolute", "prismatic", "screw", "free", "spherical", "planar", "universal" or
        "composite".
    nq, nv, n_bodies : int
        Numbers of positions, velocities (degrees of freedom) and moving bodies; n for short is that of the bodies.
    position_index, velocity_index : (n,) arrays of int
        First entry of each body's joint in q and in qd.
    dof_types : tuple
        Of each degree of freedom: "revolute", "prismatic" or "screw".
    batch_shape : tuple
        Shape of the batch of samples whose parameters differ; () if they are shared (see `vary`).
    parent : (n,) array
        Number of each body's parent; -1 for a body that hangs on the world.
    placement_rotation, placement_translation : (n, 3, 3), (n, 3) arrays, m
        Pose of each joint in the parent's frame at q = 0.
    axis, pitch : (nv, 3), (nv,) arrays
        Unit axis of each degree of freedom in the body's frame at q = 0; pitch of a screw in m/rad.
    rotor_inertia, gear_ratio, armature : (nv,) arrays, kg m^2 (kg along a slide), 1, kg m^2
        Of each degree of freedom's motor; armature = rotor_inertia gear_ratio^2 is what the joint feels.
    stiffness, damping, friction, lower_limit, ... : (nv,) arrays
        The fields of `PassiveForces`, of each degree of freedom.
    position_limits, velocity_limit, effort_limit : (nv, 2), (nv,), (nv,) arrays
        What `JointLimits` say: kept, but nothing stops there.
    fluid_density, volume, buoyancy_center, added_mass, added_volume, linear_damping, quadratic_damping, strip_drag
        The fluid's density, and the fields of `Immersion` of each body; added masses about the bodies' origins.
    mass, cg, inertia : (n,), (n, 3), (n, 3, 3) arrays, kg, m, kg m^2
        Of each body, in body axes; the tensor is about the cg.
    gravity : (3,) array, m/s^2
        In world axes.
    fixed_frames : dict
        Frames on fixed joints by name, each with the number of the body it is fixed to (-1: the world).
    visuals : dict
        Of each body or frame that has any, a tuple of `Visual`.
    bodies_without_inertia : tuple
        Names of the bodies whose motion no mass, inertia or rotor resists in any position, in every sample: forces do
        not determine their accelerations. `forward_dynamics`, `simulate` and all that needs the inverse of the mass
        matrix refuse a model with such bodies; kinematics and inverse dynamics work.
    drives : tuple
        What the model's file, or its builder, says that its motors do: `model.simulate(..., drives=model.drives)`.

    Arrays are read-only; a field given to `vary` has the batch's axes in front.
    """

    @classmethod
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
            In world axes. The default is the benchmark's: 10 m/s^2 along -y, since the links turn about z. Under the
            default of `ModelBuilder` and of files, (0, 0, -9.81), the chain would not swing.

        Examples
        --------
        >>> import rbchain as rb
        >>> chain = rb.Model.serial_chain(6)
        >>> float(chain.forward_dynamics([0.0] * 6, [0.0] * 6, [0.0] * 6)[0].round(6))
        -50.717987
        """
        return cls(serial_chain_description(n, length, mass, inertia, gravity, name))

    def vary(self, **fields: npt.ArrayLike) -> Model:
        """A model of a batch of samples that differ in some of their parameters.

        Parameters
        ----------
        **fields
            New values of any of `mass`, `cg`, `inertia`, `placement_rotation`, `placement_translation`, `axis`,
            `pitch`, `rotor_inertia`, `gear_ratio`, `gravity`, `fluid_density` and the fields of `PassiveForces` and
            `Immersion`, each with the shape of the attribute of that name, or with the batch's axes in front of it.
            An inertia may also be (..., n, 6): xx, xy, xz, yy, yz, zz; or (nested lists of) `Inertia`, (..., n), which
            also set `mass` and `cg`. Fields with batch axes must agree in them. Each field is taken as it is given: a
            new mass leaves the inertia as it was. Masses of zero are allowed: see
            `bodies_without_inertia`.

        Returns
        -------
        Model
            Its `batch_shape` is that of the fields. States given to it are one for all samples, one of each sample, or
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
        return Model(varied_description(self.description, self.kernel_model.dofs, fields))

    def of_sample(self, i: SupportsIndex | tuple[SupportsIndex, ...]) -> Model:
        """Return the model of one sample of the batch; this model if the samples do not differ.

        Parameters
        ----------
        i : int or tuple of int
            The index of the sample in the batch.

        Raises
        ------
        StateError
            If the batch has no such sample.

        Examples
        --------
        >>> import rbchain as rb
        >>> rb.Model.serial_chain(1).vary(mass=[[1.0], [2.0]]).of_sample(1).mass.tolist()
        [2.0]
        """
        if not self.batch_shape:
            return self
        check_sample_index(i, self.batch_shape)
        fields = {name: getattr(self, name) for name in VARIABLE_FIELDS}
        own = {name: value[i] for name, value in fields.items() if value.ndim > len(VARIABLE_FIELDS[name])}
        return Model(dataclasses.replace(self.description, **own))

    @cached_property
    def nominal(self) -> Model:
        """The model before its samples differed: this one, unless it comes from `vary` with batch axes.

        Controllers use it unless they are told otherwise (`PID`, `ComputedTorque`).

        Examples
        --------
        >>> import rbchain as rb
        >>> arm = rb.Model.serial_chain(1, mass=3.0)
        >>> arm.vary(mass=[[2.0], [4.0]]).nominal.mass.tolist()
        [3.0]
        """
        return self if self.description.nominal is None else Model(self.description.nominal)

    def with_payload(
        self,
        frame: str,
        mass: npt.ArrayLike | None = None,
        cg: npt.ArrayLike = (0.0, 0.0, 0.0),
        inertia: Inertia | Sequence[Inertia] | npt.ArrayLike = (0.0, 0.0, 0.0),
    ) -> Model:
        """The model with a rigid load fixed to a body.

        Parameters
        ----------
        frame : str
            Name of a body, or of a frame on fixed joints.
        mass : float or (...) array, kg
        cg : (3,) or (..., 3) array, m
            Of the load, in the axes of `frame`, from its origin.
        inertia : (3,), (6,), (3, 3) or (..., 3, 3) array, kg m^2; or Inertia, or (...) of them
            Tensor of the load about its cg, in the axes of `frame`; or an `Inertia` in that frame, instead of
            mass and cg.

        Returns
        -------
        Model
            As from `vary`: of a batch of samples where the load has batch axes.

        Examples
        --------
        >>> import numpy as np, rbchain as rb
        >>> rod = rb.Model.serial_chain(1, length=0.5, mass=2.0, gravity=(0, -10, 0))
        >>> loaded = rod.with_payload("link1", mass=np.array([0.0, 1.0]), cg=(0.5, 0, 0))
        >>> loaded.gravity_forces(np.zeros((2, 1))).tolist()
        [[5.0], [10.0]]
        >>> loaded = rod.with_payload("link1", inertia=rb.Inertia.sphere(0.1, mass=1.0, cg=(0.5, 0, 0)))
        >>> loaded.gravity_forces(np.zeros(1)).tolist()
        [10.0]
        """
        placed = self.kernel_model.frame(frame)
        return self.vary(**fields_with_payload(self.description, frame, placed, mass, cg, inertia))

    simulate = simulation.simulate
    generate = generate

    def view(
        self,
        q: npt.ArrayLike | None = None,
        *,
        show: Sequence[str] = ("bodies",),
        port: int = 8080,
        host: str = "127.0.0.1",
    ) -> Viewer:
        """Pose the mechanism in the browser by sliders (extra `view`): a page at the viewer's `url`.

        Parameters
        ----------
        q : (nq,) array, optional
            Positions to begin with; neutral ones if not given. Parameters `show`, `port` and `host`, and what is
            returned, are those of `Trajectory.view`; reactions are those of a mechanism that is held still.
        """
        from .view.viewer import Viewer

        return Viewer(self.of_sample((0,) * len(self.batch_shape)), None, q, 0, show, host, port)

    def picture(
        self, q: npt.ArrayLike | None = None, *, show: Sequence[str] = ("bodies",), size: tuple[int, int] = (800, 600)
    ) -> Figure:
        """A matplotlib Figure of the mechanism at positions q (nq,), neutral if not given (extra `view`).

        Parameters `show` and `size` are those of `Trajectory.film`.
        """
        from .view.film import picture

        return picture(self.of_sample((0,) * len(self.batch_shape)), q, show, size)

    def __reduce__(self) -> tuple[type[Model], tuple[Description]]:
        return Model, (self.description,)

    def _repr_html_(self) -> str:
        from .notebook import html_of

        return html_of(self)

    def __repr__(self) -> str:
        batch = f", batch_shape={self.batch_shape}" if self.batch_shape else ""
        return f"Model({self.name!r}, n_bodies={self.n_bodies}{batch})"
