"""Accept steps, and save the states at the saved times within them. Saved times do not change the steps.

Most methods interpolate these states when a step is accepted (`rollout.save_passed_times`). Two cases need evaluations,
which all lanes with saved times in their last step compute together:

* With dry friction, stops or contacts, the interpolated state is projected onto the active constraints, and the forces
  follow from the modes of the step.
* The interpolant of some methods has a lower order than the step (`solves_saved_states`). The state at a saved time is
  therefore the end of a shorter step from the same start, which the interpolant predicts. A shorter step that fails is
  divided.
"""

from ...compiling.jit import kernel, only_if, routine
from ..contacts.contact_rates import has_contact_modes, stop_held_dofs
from ..lanes.lanes import constant_like, select
from ..methods.adaptive_methods import compute_step, interpolate, keep_prediction, predict_from, solves_saved_states
from ..sample import clock_layout as clocks, control_layout as controls, spare_layout as spares, tally_layout as tallies
from ..sample.rate import allow_calls, evaluate, has_failed_call
from ..sample.records import Stepper
from ..sample.status import RUNNING, STEP_UNDERFLOW, STOPPED, USER_FUNCTION_FAILED
from ..tree.kinematics import normalize_positions
from .contact_events import project_onto_held_rows
from .contact_impacts import store_forces_of_modes
from .rollout import save_lane, save_passed_times
from .sampled_controllers import save_held_outputs

SHORTER_PART = 0.38  # of a part that fails: after halves, a later part would end at the same place
LONGER_PART = 2.0  # the part after a part that succeeds
SHORTEST_PART = 1e-6  # of a step that is divided: the stages of a step that is even shorter must converge


@kernel
def move_to_ends(stepper, tableau, k):
    """Move the lanes with an accepted step to its end, whose last rate becomes the first of the next step."""
    y, y_new, rates = stepper.y, stepper.y_new, stepper.rates
    accepted = stepper.control[controls.ACCEPTED, k] > constant_like(y, 0.0)
    final = tableau.c.shape[0] - 1
    keep_prediction(stepper, tableau, accepted, k)
    for j in range(y.shape[0]):
        y[j, k] = select(accepted, y_new[j, k], y[j, k])
        rates[0, j, k] = select(accepted, rates[final, j, k], rates[0, j, k])


@kernel
def has_saved_time(stepper, batch, lane):
    """Whether the last step of a lane was accepted and contains a saved time that is not saved yet."""
    slot, times, status = stepper.tally[tallies.SAVED, lane], batch.times, stepper.tally[tallies.STATUS, lane]
    if status < RUNNING or status in (USER_FUNCTION_FAILED, STEP_UNDERFLOW) or slot >= times.shape[0]:
        return False
    is_accepted = stepper.control[controls.ACCEPTED, lane] > constant_like(stepper.y, 0.0)
    return is_accepted and times[slot] <= stepper.clock[clocks.T, lane]


@kernel
def choose_lanes(block, stepper, batch):
    """Set controls.SAVES in the lanes with a saved time, and return their number.

    As long as there are any, only these lanes call user functions.
    """
    control, count = stepper.control, 0
    for lane in range(stepper.y.shape[1]):
        saves = has_saved_time(stepper, batch, lane)
        control[controls.SAVES, lane] = constant_like(control, 1.0 if saves else 0.0)
        count += saves
    for lane in range(stepper.y.shape[1]):
        if stepper.tally[tallies.STATUS, lane] >= RUNNING and not has_failed_call(block, lane):
            is_allowed = count == 0 or saves_now(stepper, lane)
            allow_calls(block, is_allowed, lane)
    return count


@kernel
def saves_now(stepper, lane):
    """Whether a lane computes the state at a saved time."""
    return stepper.control[controls.SAVES, lane] > constant_like(stepper.control, 0.0)


@kernel
def save_state(block, stepper, batch, y, lane):
    """Save the state y of a lane, and the outputs of sampled controllers, at its next saved time."""
    slot = stepper.tally[tallies.SAVED, lane]
    save_lane(block, y, batch, stepper.tally[tallies.SAMPLE, lane], slot, lane)
    stepper.tally[tallies.SAVED, lane] = slot + 1
    save_held_outputs(block, stepper, batch, slot, lane)


# --- dry friction, stops and contacts ---------------------------------------------------------------------------------


@only_if(
    lambda block, stepper, tableau, *_: solves_saved_states(tableau),
    otherwise=lambda block, stepper, tableau, batch, tolerances, k: move_to_ends(stepper, tableau, k),
)
@routine
def _accept_steps_without_modes(block, stepper, tableau, batch, tolerances, k):
    """Move the lanes to the ends of their accepted steps, and compute the states at the saved times in these steps."""
    y, y_new, change, rates, control, clock, tally, linear, spare, work = stepper
    count = choose_lanes(block, stepper, batch)
    for j in range(y.shape[0] if count > 0 else 0):
        spare[spares.START, j, k] = y[j, k]
        spare[spares.RATE, j, k] = rates[0, j, k]
    move_to_ends(stepper, tableau, k)
    if count == 0:
        return
    for j in range(y.shape[0]):
        spare[spares.NEXT_RATE, j, k] = rates[0, j, k]
    control[controls.NEXT_H, k] = control[controls.H, k]
    for lane in range(y.shape[1]):
        return_to_start(stepper, lane)
    shorter = Stepper(
        y=spare[spares.STATE],
        y_new=y_new,
        change=change,
        rates=rates,
        control=control,
        clock=clock,
        tally=tally,
        linear=linear,
        spare=spare,
        work=work,
    )
    while choose_lanes(block, stepper, batch) > 0:
        for lane in range(y.shape[1]):
            set_shorter_step(block, stepper, tableau, batch, lane)
        compute_step(block, shorter, tableau, tolerances, k)
        for lane in range(y.shape[1]):
            if saves_now(stepper, lane):
                end_shorter_step(block, stepper, tableau, batch, lane)
    for j in range(y.shape[0]):
        rates[0, j, k] = spare[spares.NEXT_RATE, j, k]
    control[controls.H, k] = control[controls.NEXT_H, k]
    for lane in range(y.shape[1]):
        predict_from(stepper, tableau, 0.0, lane)


@only_if(
    lambda block, *_: has_contact_modes(block),
    otherwise=lambda block, stepper, tableau, batch, tolerances, k: _accept_steps_without_modes(
        block, stepper, tableau, batch, tolerances, k
    ),
)
@routine
def accept_steps(block, stepper, tableau, batch, tolerances, k):
    """Save the states and forces at the saved times in the accepted steps, and move the lanes to the ends."""
    contacts, modes = block.loads.actions.contacts, block.loads.actions.modes
    state, rate, nq, n = stepper.spare[spares.STATE], stepper.spare[spares.RATE], block.q.shape[0], block.qd.shape[0]
    while choose_lanes(block, stepper, batch) > 0:
        for lane in range(state.shape[1]):
            interpolate_saved_state(block, stepper, tableau, batch, state, lane)
        stop_held_dofs(contacts, modes, state[nq : nq + n], k)
        time, saves = stepper.control[controls.TIME, k], stepper.control[controls.SAVES, k] > constant_like(state, 0.0)
        evaluate(block, state, time, rate, k)
        project_onto_held_rows(block, stepper, state, rate, time, saves, k)
        for lane in range(state.shape[1]):
            if saves_now(stepper, lane) and has_failed_call(block, lane):
                stepper.tally[tallies.STATUS, lane] = USER_FUNCTION_FAILED
            elif saves_now(stepper, lane):
                sample, slot = stepper.tally[tallies.SAMPLE, lane], stepper.tally[tallies.SAVED, lane]
                store_forces_of_modes(block, batch, sample, slot, lane)
                save_state(block, stepper, batch, state, lane)
    move_to_ends(stepper, tableau, k)


@kernel
def interpolate_saved_state(block, stepper, tableau, batch, state, lane):
    """Interpolate the `state` of a lane at its next saved time, and set controls.TIME to this time, s.

    A lane without one keeps the start of its step.
    """
    y, y_new, rates, clock = stepper.y, stepper.y_new, stepper.rates, stepper.clock
    stepper.control[controls.TIME, lane] = constant_like(y, clock[clocks.START, lane])
    for j in range(y.shape[0]):
        state[j, lane] = y[j, lane]
    if not saves_now(stepper, lane):
        return
    time, h = batch.times[stepper.tally[tallies.SAVED, lane]], clock[clocks.TAKEN, lane]
    at_end = time == clock[clocks.T, lane] and stepper.tally[tallies.STATUS, lane] != STOPPED
    theta, length = constant_like(y, (time - clock[clocks.START, lane]) / h), constant_like(y, h)
    stepper.control[controls.TIME, lane] = constant_like(y, time)
    for j in range(y.shape[0]):
        state[j, lane] = y_new[j, lane] if at_end else interpolate(tableau, y, y_new, length, rates, theta, j, lane)
    normalize_positions(block.model, state, lane)


# --- shorter steps ----------------------------------------------------------------------------------------------------


@kernel
def return_to_start(stepper, lane):
    """Make the next shorter step of a lane begin at the start of its last step."""
    clock, spare = stepper.clock, stepper.spare
    clock[clocks.REACHED, lane] = clock[clocks.START, lane]
    clock[clocks.PART, lane] = clock[clocks.TAKEN, lane]
    for j in range(stepper.y.shape[0]):
        spare[spares.STATE, j, lane] = spare[spares.START, j, lane]
        stepper.rates[0, j, lane] = spare[spares.RATE, j, lane]


@kernel
def set_shorter_step(block, stepper, tableau, batch, lane):
    """Set the length of the next shorter step of a lane, and where the polynomial of the last step predicts it.

    Saves the end of the last step if that is the next saved time. A lane that saves no other state has no step.
    """
    clock, control = stepper.clock, stepper.control
    if saves_now(stepper, lane) and batch.times[stepper.tally[tallies.SAVED, lane]] == clock[clocks.T, lane]:
        save_state(block, stepper, batch, stepper.y, lane)
        control[controls.SAVES, lane] = constant_like(control, 0.0)
    length, offset = 0.0, 0.0
    if saves_now(stepper, lane):
        remaining = batch.times[stepper.tally[tallies.SAVED, lane]] - clock[clocks.REACHED, lane]
        length = min(clock[clocks.PART, lane], remaining)
        offset = (clock[clocks.REACHED, lane] - clock[clocks.T, lane]) / clock[clocks.TAKEN, lane]
    control[controls.TIME, lane] = constant_like(control, clock[clocks.REACHED, lane])
    control[controls.H, lane] = constant_like(control, length)
    predict_from(stepper, tableau, offset, lane)


@kernel
def end_shorter_step(block, stepper, tableau, batch, lane):
    """Save the end of a shorter step of a lane at a saved time, or continue from it; shorten it if it has failed."""
    clock, tally, final = stepper.clock, stepper.tally, tableau.c.shape[0] - 1
    time = batch.times[tally[tallies.SAVED, lane]]
    is_last = clock[clocks.PART, lane] >= time - clock[clocks.REACHED, lane]
    if has_failed_call(block, lane):
        tally[tallies.STATUS, lane] = USER_FUNCTION_FAILED
    elif stepper.control[controls.FAILURE, lane] > constant_like(stepper.control, 0.0):
        clock[clocks.PART, lane] = SHORTER_PART * min(clock[clocks.PART, lane], time - clock[clocks.REACHED, lane])
        if clock[clocks.PART, lane] < SHORTEST_PART * clock[clocks.TAKEN, lane]:
            tally[tallies.STATUS, lane] = STEP_UNDERFLOW
    elif is_last:
        save_state(block, stepper, batch, stepper.y_new, lane)
        return_to_start(stepper, lane)
    else:
        clock[clocks.REACHED, lane] += clock[clocks.PART, lane]
        clock[clocks.PART, lane] *= LONGER_PART
        for j in range(stepper.y.shape[0]):
            stepper.spare[spares.STATE, j, lane] = stepper.y_new[j, lane]
            stepper.rates[0, j, lane] = stepper.rates[final, j, lane]


@only_if(lambda block, stepper, tableau, *_: not (has_contact_modes(block) or solves_saved_states(tableau)))
@kernel
def save_interpolated_states(block, stepper, tableau, batch, t_new, lane):
    """Save the states at the saved times up to t_new in an accepted step, if its method interpolates them."""
    save_passed_times(block, stepper, tableau, batch, t_new, lane)
