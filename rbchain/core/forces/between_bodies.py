"""Sum of the forces between bodies: of all springs and bushings, as a wrench on each body.

`springs` (SPRING_ROWS, count) and `bushings` (BUSHING_ROWS, count) hold integers, one column for each force, as
`springs.py` and `bushings.py` describe. `numbers` (m, lanes) holds their parameters. `wrenches` (n + 1, 6, lanes)
receives the wrench on the body of each dof about its joint origin: moment, N m, before force, N, in world axes. Row n
is the wrench on the world, about its origin.
"""

from ...compiling.jit import is_given, kernel, only_if, routine
from ..lanes.lanes import constant_like, zeros_like
from ..spatial.storage import load_force, store_spatial
from ..spatial.vectors import Force, add_forces, force_at_root, subtract_forces
from ..tree import setting_layout as setting
from ..tree.kinematics import place_about_first_joint
from .bushings import BUSHING_DOF_A, BUSHING_DOF_B, bushing_energy, bushing_state, bushing_wrench
from .springs import SPRING_DOF_A, SPRING_DOF_B, spring_energy, spring_force, spring_state


@routine
def compute_wrenches_between_bodies(model, springs, bushings, numbers, wrenches, work, k):
    """Write the sums of all forces between bodies to `wrenches` (n + 1, 6, lanes).

    Reads R, LEVER and V; writes POSITION.
    """
    n = model.parent.shape[0]
    for i in range(n):
        place_about_first_joint(i, model, work, k)
    for i in range(n + 1):
        for row in range(6):
            wrenches[i, row, k] = constant_like(wrenches, 0.0)
    add_each_spring(model, springs, numbers, wrenches, work, k)
    add_each_bushing(model, bushings, numbers, wrenches, work, k)


@kernel
def add_each_spring(model, springs, numbers, wrenches, work, k):
    """Add the forces of all springs to `wrenches` (n + 1, 6, lanes).

    Reads R, V, LEVER and POSITION.
    """
    for s in range(springs.shape[1]):
        spring = spring_state(s, model, springs, numbers, work, k)
        force, zero = spring_force(spring), zeros_like(spring.tension)
        f = Force((zero, zero, zero), force)
        add_wrench(springs[SPRING_DOF_B, s], force_at_root(f, spring.arm_b), wrenches, k)
        subtract_wrench(springs[SPRING_DOF_A, s], force_at_root(f, spring.arm_a), wrenches, k)


@kernel
def add_each_bushing(model, bushings, numbers, wrenches, work, k):
    """Add the wrenches of all bushings to `wrenches` (n + 1, 6, lanes).

    Reads R, V, LEVER and POSITION.
    """
    for s in range(bushings.shape[1]):
        bushing = bushing_state(s, model, bushings, numbers, work, k)
        f = bushing_wrench(bushing)
        add_wrench(bushings[BUSHING_DOF_B, s], force_at_root(f, bushing.arm_b), wrenches, k)
        subtract_wrench(bushings[BUSHING_DOF_A, s], force_at_root(f, bushing.arm_a), wrenches, k)


@kernel
def add_wrench(i, f, wrenches, k):
    """Add the Force f to row i of `wrenches` (n + 1, 6, lanes): both in world axes, about joint origin i."""
    store_spatial(wrenches, i, 0, k, add_forces(load_force(wrenches, i, 0, k), f))


@kernel
def subtract_wrench(i, f, wrenches, k):
    """Subtract the Force f from row i of `wrenches` (n + 1, 6, lanes): both in world axes, about joint origin i."""
    store_spatial(wrenches, i, 0, k, subtract_forces(load_force(wrenches, i, 0, k), f))


@kernel
def elastic_energy(model, springs, bushings, numbers, work, k):
    """Compute the elastic energy of all springs and bushings, J, one value (reads R, LEVER and V; writes POSITION)."""
    for i in range(model.parent.shape[0]):
        place_about_first_joint(i, model, work, k)
    total = zeros_like(numbers[0, k])
    for s in range(springs.shape[1]):
        total = total + spring_energy(s, model, springs, numbers, work, k)
    for s in range(bushings.shape[1]):
        total = total + bushing_energy(s, model, bushings, numbers, work, k)
    return total


# --- in a simulation --------------------------------------------------------------------------------------------------


@kernel
def compute_wrenches_of_actions(model, actions, work, k):
    """Compute the forces between bodies for the sweep that follows, if external forces act in it.

    Writes `actions.between_bodies` (n + 1, 6, lanes).
    """
    if actions.settings[setting.EXTERNAL_FORCES] == 1:
        compute_wrenches_between_bodies(
            model, actions.shared.springs, actions.shared.bushings, actions.numbers, actions.between_bodies, work, k
        )


@only_if(lambda model, loads, *_: is_given(loads, "actions", "between_bodies"))
@kernel
def update_wrenches_between_bodies(model, loads, work, k):
    """Compute the forces between bodies in a simulation that has any.

    Writes `loads.actions.between_bodies` (n + 1, 6, lanes).
    """
    compute_wrenches_of_actions(model, loads.actions, work, k)


@only_if(lambda i, actions, *_: is_given(actions, "between_bodies"), otherwise=lambda i, actions, f, k: f)
@kernel
def subtract_wrench_between_bodies(i, actions, f, k):
    """Subtract the forces between bodies from the force f on the body of dof i.

    f is a Force in world axes about joint origin i.
    """
    return subtract_forces(f, load_force(actions.between_bodies, i, 0, k))
