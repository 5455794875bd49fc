"""Energy: compute the kinetic and the potential energy of a state, including rotors and water."""

from ...compiling.jit import kernel
from ..forces.hydrodynamics import energy_of_water
from ..lanes.lanes import constant_like
from ..spatial.inertias import rigid_momentum
from ..spatial.storage import load3, load_motion
from ..spatial.vectors import add3, dot, power, scale3
from ..tree import frame_layout as frame, parameter_layout as param
from ..tree.kinematics import move_dof, place_dof, rigid_inertia
from ..tree.layout import parameter, parameter3

ENERGY_KINETIC, ENERGY_POTENTIAL = 0, 1


@kernel
def energy(model, q, qd, energies, work, k):
    """Compute T = sum of v . I v / 2 + armature qd^2 / 2 and V = - sum of m g . c, for the samples in lanes k.

    c is the center of mass of a body in the world. Writes rows ENERGY_KINETIC and ENERGY_POTENTIAL of energies
    (2, lanes), J. q is (nq, lanes), and qd (n, lanes).
    """
    n = model.parent.shape[0]
    energies[ENERGY_KINETIC, k] = constant_like(energies, 0.0)
    energies[ENERGY_POTENTIAL, k] = constant_like(energies, 0.0)
    for i in range(n):
        move_dof(i, model, q, qd, work, k)
        place_dof(i, model, work, k)
        add_energy(i, model, qd, energies, work, k)


@kernel
def add_energy(i, model, qd, energies, work, k):
    """Add the energy of dof i and its body to energies (2, lanes), J. Reads R, V and POSITION.

    qd is (n, lanes).
    """
    gravity = parameter3(model.parameters, model.parent.shape[0], param.GRAVITY, k)
    v = load_motion(work.dof, i, frame.V, k)
    m, h, J = rigid_inertia(i, model, work, k)
    rotor = parameter(model.parameters, i, param.ARMATURE, k) * qd[i, k] * qd[i, k]
    of_water, buoyancy = energy_of_water(i, model, load3(work.dof, i, frame.POSITION, k), v, work, k)
    doubled = power(rigid_momentum(m, h, J, v), v) + rotor + of_water
    energies[ENERGY_KINETIC, k] = energies[ENERGY_KINETIC, k] + constant_like(doubled, 0.5) * doubled
    first_moment = add3(scale3(m, load3(work.dof, i, frame.POSITION, k)), h)
    energies[ENERGY_POTENTIAL, k] = energies[ENERGY_POTENTIAL, k] - dot(gravity, first_moment) + buoyancy
