"""The state within a step. Steps of time stepping with contacts may have two parts, between which velocities jump.

The velocities of time stepping are linear in each part of a step from (q, v) to (q', v') of length h:

* In a step with an impact, the parts meet at the time c h of the impact. If nothing else touches, the velocities change
  by c d before and by (1 - c) d after the impact, where d is the change without impulses. Else they are constant.
* In another step, the positions move with s v + (1 - s) v'. If s < 1/2, the velocities change from v to v' in the first
  part, which ends at 2 s h.
* All other steps have one part.

Positions are therefore the integrals of velocities, apart from corrections of positions. The positions of a part are a
cubic polynomial, whose slopes at both ends are the rates of the positions there. Prescribed velocities do not jump.
"""

from ...compiling.jit import is_given, kernel, only_if
from ..contacts.contact_rates import has_contact_modes
from ..lanes.lanes import any_lane, constant_like, select, zeros_like
from ..methods.adaptive_methods import interpolate
from ..sample import control_layout as controls, spare_layout as spares
from ..sample.rate import moves_freely
from ..tree.kinematics import normalize_positions, position_rates


def has_parts(block, *_):
    """Whether steps may have two parts: time stepping with dry friction, stops or contacts."""
    has_contacts = is_given(block, "loads", "actions", "contacts")
    return has_contacts and not has_contact_modes(block)


# --- the division of a step -------------------------------------------------------------------------------------------


@only_if(has_parts)
@kernel
def keep_smooth_changes(block, stepper, k):
    """Keep the changes of the velocities without impulses, which are in `change`, for `divide_step`, rad/s and m/s."""
    nq = block.q.shape[0]
    for i in range(block.qd.shape[0]):
        stepper.spare[spares.PART_START, nq + i, k] = stepper.change[nq + i, k]


@only_if(has_parts)
@kernel
def divide_step(block, stepper, weight, impact, flight, k):
    """Compute the place at which both parts of a step meet, the states there, and the rates of their positions.

    `weight` is the weight s of the velocity at the start. `impact` is 1 in lanes with an impact, and `flight` is 1 if
    nothing else touches; they are one value for each lane. Reads the rates of the positions at the end of the step,
    rates[1]. Writes the states and rates (rows, lanes) spares.PART_END to PART_START_RATE.
    """
    y, y_new, spare, model = stepper.y, stepper.y_new, stepper.spare, block.model
    nq, n, h = block.q.shape[0], block.qd.shape[0], stepper.control[controls.H, k]
    one, half = constant_like(y, 1.0), constant_like(y, 0.5)
    collides = impact > constant_like(y, 0.0)
    meeting = select(collides, weight, min(weight + weight, one))
    stepper.control[controls.MEETING, k] = meeting
    is_divided = meeting < one  # other lanes must not depend on whether an adjacent lane is divided
    end, start = spare[spares.PART_END], spare[spares.PART_START]
    end_rate, start_rate = spare[spares.PART_END_RATE], spare[spares.PART_START_RATE]
    for j in range(nq + n, y.shape[0]):
        end[j, k] = select(is_divided, y[j, k] + meeting * (y_new[j, k] - y[j, k]), y_new[j, k])
        start[j, k] = end[j, k]
    for i in range(n):
        j = nq + i
        smooth = flight * start[j, k]
        if moves_freely(block, i):
            end[j, k] = select(collides, y[j, k] + meeting * smooth, y_new[j, k])
            start[j, k] = select(collides, y_new[j, k] - (one - meeting) * smooth, y_new[j, k])
        else:
            end[j, k] = select(is_divided, y[j, k] + meeting * (y_new[j, k] - y[j, k]), y_new[j, k])
            start[j, k] = end[j, k]
        end_rate[j, k] = half * (y[j, k] + end[j, k])
    for j in range(nq):
        end[j, k] = y_new[j, k]
        end_rate[j, k] = stepper.rates[1, j, k]
    if any_lane(is_divided):
        position_rates(model, y[:nq], end_rate[nq : nq + n], start_rate[:nq], k)
        for j in range(nq):
            start[j, k] = y[j, k] + meeting * h * start_rate[j, k]
        normalize_positions(model, start, k)
        for j in range(nq):
            end[j, k] = select(is_divided, start[j, k], end[j, k])
        position_rates(model, end[:nq], end[nq : nq + n], start_rate[:nq], k)
        for j in range(nq):
            end_rate[j, k] = select(is_divided, start_rate[j, k], end_rate[j, k])
        position_rates(model, end[:nq], start[nq : nq + n], start_rate[:nq], k)
    for j in range(nq):
        start[j, k] = end[j, k]


# --- the state in a part ----------------------------------------------------------------------------------------------


@kernel
def part_of_row(block, stepper, is_first, j, k):
    """Return row j at the start and at the end of a part, the slopes there as changes per part, and its share.

    These, and `is_first`, are one value for each lane. The share is a fraction of the step.
    """
    y, spare, rates, meeting = stepper.y, stepper.spare, stepper.rates, stepper.control[controls.MEETING, k]
    h, nq = stepper.control[controls.H, k], block.q.shape[0]
    start = select(is_first, y[j, k], spare[spares.PART_START, j, k])
    end = select(is_first, spare[spares.PART_END, j, k], stepper.y_new[j, k])
    share = select(is_first, meeting, constant_like(y, 1.0) - meeting)
    if j >= nq:
        return start, end, end - start, end - start, share
    first = select(is_first, rates[0, j, k], spare[spares.PART_START_RATE, j, k])
    last = select(is_first, spare[spares.PART_END_RATE, j, k], rates[1, j, k])
    return start, end, share * h * first, share * h * last, share


@only_if(
    has_parts,
    otherwise=lambda block, stepper, tableau, h, theta, j, k: interpolate(
        tableau, stepper.y, stepper.y_new, h, stepper.rates, theta, j, k
    ),
)
@kernel
def state_within_step(block, stepper, tableau, h, theta, j, k):
    """Compute row j of the state after the fraction theta of a step; where the parts meet, in the first one.

    `theta`, h and the result are one value for each lane.
    """
    zero, one, meeting = constant_like(theta, 0.0), constant_like(theta, 1.0), stepper.control[controls.MEETING, k]
    is_first = theta <= meeting
    start, end, first, last, share = part_of_row(block, stepper, is_first, j, k)
    passed = select(is_first, theta, theta - meeting)
    x = passed / select(share > zero, share, one)
    change = end - start
    bend, rest = first - change, one - x
    return start + x * (change + rest * (bend + x * (change - last - bend)))


@kernel
def polynomial_of_part(block, stepper, is_first, j, lane):
    """Return row j at the start and at the end of a part, and its coefficients of x to x^4, with the fraction x."""
    start, end, first, last, _ = part_of_row(block, stepper, is_first, j, lane)
    change = end - start
    turn = change - last - (first - change)
    return float(start), float(end), (first, turn - (first - change), -turn, zeros_like(change))


@only_if(has_parts, otherwise=lambda block, stepper, lane: constant_like(stepper.y, 1.0))
@kernel
def meeting_of_parts(block, stepper, lane):
    """Return the fraction of the last step of a lane at which its second part starts; 1 without one."""
    return stepper.control[controls.MEETING, lane]
