"""Kinetic and potential energy, that of the rotors included."""

from ..forces.hydrodynamics import energy_of_water
from ..simd.jit import kernel
from ..simd.lanes import like
from ..spatial.inertias import rigid_momentum
from ..spatial.storage import load3, load_motion
from ..spatial.vectors import add3, dot, power, scale3
from ..tree.kinematics import move_body, place_body, rigid_inertia
from ..tree.layout import ARMATURE, GRAVITY, POSITION, V, parameter, parameter3

KINETIC, POTENTIAL = 0, 1


@kernel
def energy(model, q, qd, energies, work, k):
    """T = sum of v . I v / 2 and V = - sum of m g . c.

    Written to rows KINETIC and POTENTIAL of energies (2, lanes).
    """
    n = model.parent.shape[0]
    energies[KINETIC, k] = like(energies, 0.0)
    energies[POTENTIAL, k] = like(energies, 0.0)
    for i in range(n):
        move_body(i, model, q, qd, work, k)
        place_body(i, model, work, k)
        add_energy(i, model, qd, energies, work, k)


@kernel
def add_energy(i, model, qd, energies, work, k):
    """Add body i's share. Reads R, V and POSITION."""
    gravity = parameter3(model.parameters, model.parent.shape[0], GRAVITY, k)
    v = load_motion(work.body, i, V, k)
    m, h, J = rigid_inertia(i, model, work, k)
    rotor = parameter(model.parameters, i, ARMATURE, k) * qd[i, k] * qd[i, k]
    of_water, buoyancy = energy_of_water(i, model, load3(work.body, i, POSITION, k), v, work, k)
    doubled = power(rigid_momentum(m, h, J, v), v) + rotor + of_water
    energies[KINETIC, k] = energies[KINETIC, k] + like(doubled, 0.5) * doubled
    first_moment = add3(scale3(m, load3(work.body, i, POSITION, k)), h)
    energies[POTENTIAL, k] = energies[POTENTIAL, k] - dot(gravity, first_moment) + buoyancy
