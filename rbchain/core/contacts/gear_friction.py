"""Dry friction of joints that grows with the force of the drives, as the friction of gears does.

Let f be the actuator force of a dof, N m or N. Each of the four limits of its friction, static and kinetic in both
directions, is F + c |f|. F is the limit without drives, and c the gear friction, without a unit. f does not depend on
the accelerations, so the limits are known before the friction.

`BlockActions.numbers` of the element contains the limits of the last evaluation. The other kernels therefore need not
know that the limits change.
"""

from ...compiling.jit import is_given, kernel, only_if
from ..tree import joint_layout as joint
from . import element_layout as element

# Rows of `SharedActions.gear_friction`, one column for each such friction.
GEAR_DOF = 0
GEAR_NUMBERS = 1  # index of the first of its numbers in `BlockActions.numbers`
GEAR_ROWS = 2


@only_if(lambda actions, k: is_given(actions, "shared", "gear_friction"))
@kernel
def update_gear_friction(actions, k):
    """Set the limits of friction that grows with the force of the drives from the actuator forces, N m or N.

    Reads joint.ACTUATOR_FORCE of the last evaluation; writes `BlockActions.numbers`.
    """
    gears, numbers, joints = actions.shared.gear_friction, actions.numbers, actions.joints
    for c in range(gears.shape[1]):
        i, at = gears[GEAR_DOF, c], gears[GEAR_NUMBERS, c]
        more = numbers[at + element.FRICTION_OF_GEAR, k] * abs(joints[joint.ACTUATOR_FORCE, i, k])
        for limit in range(element.FRICTION_LIMITS):
            numbers[at + limit, k] = numbers[at + element.FRICTION_WITHOUT_GEAR + limit, k] + more
