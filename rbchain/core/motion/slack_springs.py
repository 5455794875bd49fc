"""Springs that can only pull, such as cables, and that would become taut and slack again within one step.

As with elastic stops (`elastic_stops`), the ends of such a step do not see the force. The lengths within the step do:
if a spring that is slack at both ends becomes taut, the step is repeated with a shorter length.
"""

from ...compiling.jit import is_given, kernel, only_if, routine
from ..forces.springs import SPRING_NUMBERS, SPRING_REST_LENGTH, SPRING_TENSION_ONLY, stretch_of_spring
from ..lanes.lanes import any_lane, constant_like, epsilon, full_like, select, zeros_like
from ..methods.adaptive_methods import interpolate
from ..sample import control_layout as controls
from ..sample.records import ERROR_TO_SHORTEN
from ..tree.kinematics import move_dof, normalize_positions, place_about_first_joint
from .elastic_stops import INTERVALS, PART_OF_TOLERANCE, SEARCHES, approach_extreme


@only_if(lambda block, *_: is_given(block, "loads", "actions", "between_bodies"))
@routine
def shorten_before_taut_springs(block, stepper, tableau, tolerances, k):
    """Set the error of lanes whose step passes a taut spring to a number that shortens it.

    Overwrites q, qd, R, LEVER, V and POSITION.
    """
    springs, control, y = block.loads.actions.shared.springs, stepper.control, stepper.y
    zero, one = constant_like(y, 0.0), constant_like(y, 1.0)
    for s in range(springs.shape[1]):
        if springs[SPRING_TENSION_ONLY, s] == 0:
            continue
        h, error = control[controls.H, k], control[controls.ERROR, k]
        rest_length = block.loads.actions.numbers[springs[SPRING_NUMBERS, s] + SPRING_REST_LENGTH, k]
        start = stretch_at(s, block, stepper, tableau, zeros_like(h), k)
        end = stretch_at(s, block, stepper, tableau, full_like(h, 1.0), k)
        is_slack = (max(start, end) < zero) & (error <= one) & (h > zero)
        if not any_lane(is_slack):
            continue
        tolerance = constant_like(y, PART_OF_TOLERANCE) * (
            constant_like(y, tolerances.atol) + constant_like(y, tolerances.rtol) * rest_length
        )
        tolerance = max(tolerance, constant_like(y, 64.0) * constant_like(y, epsilon(y)) * rest_length)
        passes = is_slack & (largest_stretch(s, block, stepper, tableau, start, k) > tolerance)
        control[controls.ERROR, k] = select(passes, constant_like(y, ERROR_TO_SHORTEN), error)


@routine
def largest_stretch(s, block, stepper, tableau, start, k):
    """Return the largest stretch of spring s within the steps, m, from the stretch at their starts, for each lane."""
    part = full_like(start, 1.0 / INTERVALS)
    middle, stretch = part, start
    for number in range(1, INTERVALS):
        theta = full_like(start, number / INTERVALS)
        found = stretch_at(s, block, stepper, tableau, theta, k)
        middle, stretch = select(found > stretch, theta, middle), max(stretch, found)
    width = part
    for _ in range(SEARCHES):
        left = stretch_at(s, block, stepper, tableau, middle - width, k)
        center = stretch_at(s, block, stepper, tableau, middle, k)
        right = stretch_at(s, block, stepper, tableau, middle + width, k)
        stretch = max(stretch, center)
        middle, width = approach_extreme(middle, width, left, center, right)
    return max(stretch, stretch_at(s, block, stepper, tableau, middle, k))


@kernel
def stretch_at(s, block, stepper, tableau, theta, k):
    """Return the length of spring s above its rest length after the fraction theta of the steps, m."""
    model, work, q, y, y_new = block.model, block.work, block.q, stepper.y, stepper.y_new
    springs, numbers, h = (
        block.loads.actions.shared.springs,
        block.loads.actions.numbers,
        stepper.control[controls.H, k],
    )
    for j in range(q.shape[0]):
        q[j, k] = interpolate(tableau, y, y_new, h, stepper.rates, theta, j, k)
    normalize_positions(model, q, k)
    for i in range(model.parent.shape[0]):
        move_dof(i, model, q, block.qd, work, k)
        place_about_first_joint(i, model, work, k)
    return stretch_of_spring(s, model, springs, numbers, work, k)
