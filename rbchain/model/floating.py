"""The bodies of a mechanism without joints: each floats, so its state consists of its own pose and velocity."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from .assembly import Mechanism, assemble, fixed_body
from .description import Description
from .inertia import Inertia
from .joint import Free
from .limits import LIMITS, JointLimits
from .passive import PASSIVE_FIELDS, PassiveForces
from .pose import Pose


def floating_description(d: Description, bodies: Sequence[int], frames: Collection[str]) -> Description:
    """Return a description of some bodies of a mechanism, each on a free joint to the world.

    It has the poses of the `frames` on these bodies and on the world, and unit inertias in place of the numbers of the
    bodies.
    """
    count = 6
    limits = np.array([[getattr(JointLimits, name) for name in LIMITS]] * count, float)
    passive = {field: np.full(count, getattr(PassiveForces, field), float) for field in PASSIVE_FIELDS}
    floating = fixed_body(None, Pose())._replace(
        joint=Free(),
        inertia=Inertia(1.0, inertia=(1.0, 1.0, 1.0)),
        rotor_inertia=np.zeros(count),
        gear_ratio=np.ones(count),
        passive=passive,
        limits=limits,
    )
    names = [d.body_names[i] for i in bodies]
    found = {name: floating._replace(joint_name=name) for name in names}
    for name in sorted(set(frames) - set(names)):
        frame = d.frames[name]
        found[name] = fixed_body(None if frame.body < 0 else d.body_names[frame.body], frame.pose)
    return assemble(Mechanism(d.name, found, np.zeros(3), 0.0, d.nonphysical_inertia, ()))
