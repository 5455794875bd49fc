"""Edit models: lock joints, add motors and payloads, choose another root, remove constraints."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ..common.calls import explains_calls
from ..errors import ModelError
from ..model.assembly import mechanism_of
from ..model.constraints import CouplerConstraint
from ..model.editing import (
    locked_description,
    open_description,
    path_to_root,
    rerooted_description,
)
from ..model.inertia import Inertia
from ..model.motors import description_with_motor
from ..model.payload import description_with_payload
from .edited_states import EditedStates, state_of_edited
from .file_records import with_file_records


class Editing(EditedStates):
    """Methods of Model that return a changed model."""

    def lock(self, joints: Mapping[str, npt.ArrayLike]) -> Self:
        """Return the model without these joints, which are fixed at the given positions.

        The bodies of locked joints are merged into their parents, and their names become frame names. All other names,
        limits, visuals, immersions, passive forces, drives and constraints remain. Drives of locked joints are removed.
        Keyframes and sensors of a model file remain, without locked joints and without forces in them.

        A joint that is coupled to a locked one is locked too, at the position that its CouplerConstraint requires.
        Constraints between bodies that become fixed to each other are removed if the positions satisfy them up to
        1e-6, relative to 1 plus the coordinates of the bodies. Loops that can still move are not checked; use
        `assemble` to close them.

        Parameters
        ----------
        joints : dict
            Position of each joint to lock, by its name: a value in rad or m, or (m,) values for a joint with m
            entries in q.

        Returns
        -------
        Model
            `lock_state` converts states of this model to states of the new one.

        Raises
        ------
        ModelError
            If a joint does not exist, a position has the wrong shape, all joints are locked, or the positions violate a
            constraint. If two merged bodies both have drag, a drive has its own model, or the samples of the model
            differ.

        Examples
        --------
        >>> import rbchain as rb
        >>> arm = rb.Model.serial_chain(3, length=0.5)
        >>> stiff = arm.lock({"link3": 0.0})
        >>> stiff.joint_names, stiff.mass.round(3).tolist()
        (('link1', 'link2'), [0.1, 0.2])
        >>> stiff.frame_poses([0.0, 0.0], "link3").translation.tolist()
        [1.0, 0.0, 0.0]
        """
        locked = type(self)(locked_description(self.description, joints))
        return with_file_records(locked, self, partial(state_of_edited, self, locked))

    @explains_calls(is_method=True)
    def with_motor(
        self,
        joint: str,
        stiffness: float,
        *,
        damping: float = 0.0,
        backlash: float = 0.0,
        rotor_inertia: float | None = None,
        gear_ratio: float | None = None,
        motor_friction: float = 0.0,
        motor_damping: float = 0.0,
    ) -> Self:
        """Return the model with a motor that drives a joint through an elastic transmission with backlash.

        The motor is a separate body on the joint with this name, so drives and encoders of this joint act on the motor.
        A second joint, with the suffix "_deflection", connects the link to the motor. Its position is the deflection of
        the transmission, so the position of the link is the sum of the positions of both joints.

        Parameters
        ----------
        joint : str
            Name of a revolute or prismatic joint.
        stiffness : float, N m/rad or N/m
            Stiffness of the transmission, at the joint.
        damping : float, N m s/rad or N s/m
            Viscous damping of the transmission, at the joint. It also acts within the backlash.
        backlash : float, rad or m
            Width of the range in which the transmission exerts no elastic force, at the joint.
        rotor_inertia : float, kg m^2, optional
            Inertia of the rotor about its axis. The default is the rotor inertia of the joint.
        gear_ratio : float, optional
            Rotations of the rotor per rotation of the joint; in rad/m for a prismatic joint. The default is the gear
            ratio of the joint.
        motor_friction : float, N m
            Dry friction at the shaft of the motor. It is `gear_ratio` times larger at the joint.
        motor_damping : float, N m s/rad
            Viscous friction at the shaft of the motor. It is `gear_ratio` squared times larger at the joint.

        Returns
        -------
        Model
            The position of the motor comes before the deflection in q, and likewise in qd. Limits and passive forces of
            the joint remain with the motor.

        Raises
        ------
        ModelError
            If the joint does not exist, has another type, has a motor, or belongs to a CouplerConstraint. If a value
            is negative, the motor has no inertia, a drive has its own model, or the samples of the model differ.

        Notes
        -----
        The kinetic energy of the rotor includes only its rotation relative to the link that carries it. This is the
        usual model for large gear ratios (Spong 1987). The friction is regularized, as in `PassiveForces`; a
        `DryFriction` of the joint sticks.

        References
        ----------
        Spong (1987), "Modeling and control of elastic joint robots".

        Examples
        --------
        >>> import rbchain as rb
        >>> rod = rb.Model.serial_chain(1)
        >>> elastic = rod.with_motor("link1", stiffness=20.0, backlash=0.01, rotor_inertia=1e-5, gear_ratio=50.0)
        >>> elastic.joint_names
        ('link1', 'link1_deflection')
        >>> elastic.passive_forces([0.0, 0.015], [0.0, 0.0]).round(6).tolist()
        [0.0, -0.2]
        """
        spring = {"stiffness": stiffness, "damping": damping, "backlash": backlash}
        motor = {
            "rotor_inertia": rotor_inertia,
            "gear_ratio": gear_ratio,
            "motor_friction": motor_friction,
            "motor_damping": motor_damping,
        }
        driven = type(self)(description_with_motor(self.description, joint, spring, motor))
        return with_file_records(driven, self, partial(state_of_edited, self, driven))

    @explains_calls(is_method=True)
    def with_payload(
        self,
        frame: str,
        *,
        mass: npt.ArrayLike | None = None,
        cg: npt.ArrayLike = (0.0, 0.0, 0.0),
        inertia: npt.ArrayLike = (0.0, 0.0, 0.0),
        body: Inertia | Sequence[Any] | np.ndarray | None = None,
        known: bool = False,
    ) -> Self:
        """Return the model with a rigid payload fixed to a body.

        Parameters
        ----------
        frame : str
            Name of a body, or of a frame on fixed joints.
        mass : float or (...) array, kg
        cg : (3,) or (..., 3) array, m
            Center of mass of the payload, in the axes of `frame`, from its origin.
        inertia : (3,), (6,), (3, 3) or (..., 3, 3) array, kg m^2
            Tensor of the payload about its cg, in the axes of `frame`.
        body : Inertia, or (...) of them, optional
            Instead of `mass`, `cg` and `inertia`: an `Inertia` in the axes of `frame`, or nested lists of them.
        known : bool
            Whether controllers know the payload: the `nominal` model then also has it. It must then be the same for all
            samples.

        Returns
        -------
        Model
            As from `vary`; the batch axes of the payload are the batch axes of the samples.

        Raises
        ------
        ModelError
            If the model has no such frame, it is fixed to the world, or a value is invalid. If the payload is
            known and differs between the samples.

        Examples
        --------
        >>> import numpy as np, rbchain as rb
        >>> rod = rb.Model.serial_chain(1, length=0.5, mass=2.0, gravity=(0, -10, 0))
        >>> loaded = rod.with_payload("link1", mass=np.array([0.0, 1.0]), cg=(0.5, 0, 0))
        >>> loaded.gravity_forces(np.zeros((2, 1))).tolist()
        [[5.0], [10.0]]
        >>> loaded = rod.with_payload("link1", body=rb.Inertia.sphere(0.1, mass=1.0, cg=(0.5, 0, 0)))
        >>> loaded.gravity_forces(np.zeros(1)).tolist()
        [10.0]
        """
        placed = self.kernel_model.frame(frame)
        if not isinstance(known, bool):
            raise ModelError(f"known is {known!r}; expected True or False")
        payload, dofs = {"mass": mass, "cg": cg, "inertia": inertia, "body": body}, self.kernel_model.dofs
        return type(self)(description_with_payload(self.description, dofs, frame, placed, payload, known))

    def open_tree(self) -> Self:
        """Return the model without its constraints.

        Returns
        -------
        Model
            The open tree. Its joints move independently: loops are cut, and coupled joints are released. Its drives
            apply forces to their own joints only. A warning lists the drives whose joints were coupled to others.

        Examples
        --------
        >>> import rbchain as rb
        >>> builder = rb.ModelBuilder()
        >>> for name in ("motor", "arm"):
        ...     builder.add_body(name, joint=rb.Revolute(), inertia=rb.Inertia(1.0, inertia=(1, 1, 1)))
        >>> builder.add_constraint(rb.CouplerConstraint("gear", "arm", "motor", ratio=0.5))
        >>> builder.build().open_tree().constraint_names
        ()
        """
        couplers = [place for place in self.description.constraints if place.kind == CouplerConstraint.kind]
        coupled = {self.joint_names[body] for place in couplers for body in (place.body_a, place.body_b)}
        driven = sorted({drive.joint for drive in self.drives} & coupled)
        if driven:
            warnings.warn(
                f"open_tree: drives of joints {driven} act on these joints only, because the open tree does not couple "
                "other joints to them. Add drives of the other joints, or pass drives=() to simulate",
                stacklevel=2,
            )
        return type(self)(open_description(self.description))

    def reroot(self, body: str) -> Self:
        """Return the same mechanism with another root. The root is the body that the free joint connects to the world.

        The current root must be on a free joint. The joints between the old and the new root are reversed: the parent
        becomes the child. The coordinates of revolute, prismatic and screw joints do not change; their axes point in
        the opposite direction.

        Parameters
        ----------
        body : str
            Name of the body that becomes the root.

        Returns
        -------
        Model
            `reroot_state` converts states of this model to states of the new one.

        Raises
        ------
        ModelError
            If the model has no such body, its root is not on a free joint, a drive has its own model, or the samples of
            the model differ. If this free joint, or a reversed free or spherical joint, has passive forces, a rotor,
            limits or a drive that refer to the axes of its body. If the drive of a reversed joint has gravity
            compensation.

        Notes
        -----
        The names of joints, frames and constraints do not change, and frames keep their poses. The frame of a moving
        body is the frame of its joint, and a reversed joint is at a different point of the body. If these frames
        differ, the body gets the frame of the reversed joint, and its name gets the suffix "_body". The old name
        becomes a frame on the body, at the old pose.

        RigidBodyDynamics.jl moves the default frames of bodies in the same way. A reversed universal or composite joint
        has its coordinates in reverse order, and a reversed planar joint becomes composite.

        A mechanism on a fixed base cannot be rerooted, because the base would move with the mechanism. Load it with a
        floating base: `rb.load(file, base=rb.Free())`.

        Examples
        --------
        >>> import rbchain as rb
        >>> builder = rb.ModelBuilder()
        >>> rod = rb.Inertia.rod(1.0, mass=1.0, cg=(0.5, 0, 0))
        >>> builder.add_body("body", joint=rb.Free(), inertia=rod)
        >>> builder.add_body("arm", parent="body", joint=rb.Revolute(), placement=rb.Pose((1, 0, 0)), inertia=rod)
        >>> swimmer = builder.build()
        >>> turned = swimmer.reroot("arm")
        >>> turned.body_names, turned.joint_names, list(turned.fixed_frames)
        (('arm', 'body_body'), ('body', 'arm'), ['body'])
        """
        rerooted = type(self)(rerooted_description(self.description, body))
        joints = zip(self.joint_names, self.description.dof_counts.tolist(), strict=True)
        dofs = dict(zip(self.body_names, joints, strict=True))
        reversed_joints = dict(dofs[name] for name in path_to_root(mechanism_of(self.description), body)[:-1])
        return with_file_records(rerooted, self, partial(self.reroot_state, body), reversed_joints)
