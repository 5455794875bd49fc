"""Describe a serial chain of equal links: the mechanism of `Model.serial_chain`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ModelError
from .description import Description, water_of
from .inertia import Inertia
from .joint import Revolute
from .limits import JointLimits
from .passive import PASSIVE_FIELDS, PassiveForces
from .pose import positive, vector3
from .validation import check_finite, check_inertia, check_mass


def serial_chain_description(
    n: int, length: float, mass: float, inertia: Inertia | None, gravity: npt.ArrayLike, name: str
) -> Description:
    """Return the description of n equal links along x, which all turn about z."""
    if not isinstance(n, (int, np.integer)) or n < 1:
        raise ModelError(f"n is {n!r}; expected the number of links, an integer of at least 1")
    length = positive(length, "length")
    link = Inertia.rod(length, mass=mass, cg=(length / 2, 0, 0)) if inertia is None else inertia
    if not isinstance(link, Inertia):
        raise ModelError(
            f"inertia is {inertia!r}; expected an Inertia. Use rbchain.Inertia(mass, cg, inertia) for a tensor"
        )
    names = tuple(f"link{i + 1}" for i in range(n))
    check_mass(names[:1], np.array([link.mass]))
    check_finite(names[:1], "cg", link.cg[None], 1)
    check_inertia(names[:1], link.inertia[None])
    offsets = np.zeros((n, 3))
    offsets[1:, 0] = length
    passive: dict[str, Any] = {field: np.full(n, getattr(PassiveForces, field)) for field in PASSIVE_FIELDS}
    water: dict[str, Any] = water_of([None] * n, 0.0)
    return Description(
        name=name,
        body_names=names,
        joint_names=names,
        joint_types=(Revolute.kind,) * n,
        dof_counts=np.ones(n, int),
        dof_types=(Revolute.kind,) * n,
        parent=np.arange(-1, n - 1),
        placement_rotation=np.tile(np.eye(3), (n, 1, 1)),
        placement_translation=offsets,
        axis=np.tile([0.0, 0.0, 1.0], (n, 1)),
        pitch=np.zeros(n),
        rotor_inertia=np.zeros(n),
        gear_ratio=np.ones(n),
        **passive,
        mass=np.full(n, link.mass),
        cg=np.tile(link.cg, (n, 1)),
        inertia=np.tile(link.inertia, (n, 1, 1)),
        gravity=vector3(gravity, "gravity"),
        **water,
        frames={},
        nonphysical_inertia="refuse",
        limits=np.tile(JointLimits().of_dofs(name, Revolute()), (n, 1)),
        drives=(),
        visuals={},
    )
