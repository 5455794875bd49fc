"""Compute the rate of a state under drives: actuator forces and prescribed motions, and the dynamics under them.

A motor gives a force, or forces a motion: then hybrid dynamics finds what that takes. Controllers compute gravity and
torques in sweeps of their own, with their own model of the mechanism, without friction and wrenches.
"""

from ..algorithms.aba import forward_dynamics
from ..algorithms.hybrid import hybrid_dynamics
from ..forces.passive import passive_force, passive_slopes
from ..forces.signals import ACCELERATION, RATE, VALUE, follow_signals
from ..simd.jit import kernel, routine
from ..simd.lanes import like, select
from ..tree.kinematics import position_rates
from ..tree.layout import (
    CALLABLE,
    COMPENSATES,
    COMPUTED_FORCE,
    COMPUTES,
    CONSTANT_FORCE,
    CUSTOM,
    FORCED,
    FUNCTION,
    FUNCTION_COUNT,
    FUNCTION_NUMBERS,
    GIVEN_QDD,
    HARDNESS,
    IMPLICIT,
    MOTOR,
    OWN_FORCE,
    PRESCRIBED,
    SLOPE,
    SPEED,
    STEP_LENGTH,
    USER_FORCES,
    WEIGHT,
    YIELDING,
    apply_gravity,
)
from .callbacks import call, note_failed_call

# Rows of `SharedActions.drives`, one column for each degree of freedom.
KIND = 0
SIGNAL = 1  # what it gives or follows
GAINS = 2  # the number that is the first of KP, KI, KD, LIMIT
INTEGRAL = 3  # the row of the state that integrates the error, or -1
COMPENSATED = 4  # 1 if it carries the joint's share of gravity besides
DRIVE_ROWS = 5
NONE, FORCE, PRESCRIBED_ACCELERATION, PRESCRIBED_VELOCITY, PRESCRIBED_POSITION, PID, COMPUTED_TORQUE = range(7)
FORCED_KINDS = (PRESCRIBED_ACCELERATION, PRESCRIBED_VELOCITY, PRESCRIBED_POSITION)
KP, KI, KD, LIMIT = 0, 1, 2, 3

# The sweeps of an evaluation: what gravity takes, what the controllers' equations take, and the motion.
GRAVITY_SWEEP, MODEL_SWEEP, MOTION_SWEEP = 0, 1, 2


@routine
def move_under_drives(block, y, t, rate, k):
    """Rate of a state y = (q, qd, integrals of errors) at time t, whose forced joints are put where they must be."""
    acting, nq, n = block.loads.acting, block.q.shape[0], block.qd.shape[0]
    q, qd = y[:nq], y[nq : nq + n]
    acting.time[0, k] = t
    follow_signals(acting, k)
    for i in range(n):
        force_joint(i, block.model, acting, q, qd, k)
        acting.joints[OWN_FORCE, i, k] = passive_force(i, block.model, q, qd, k)
    position_rates(block.model, q, qd, rate[:nq], k)
    if acting.shared.settings[FUNCTION] != 0:
        for lane in range(acting.time.shape[1]):
            ask_user(acting, nq, n, y, lane)
    for sweep in range(3):
        if sweep == MOTION_SWEEP or acting.shared.settings[COMPENSATES if sweep == GRAVITY_SWEEP else COMPUTES] == 1:
            sweep_under_drives(sweep, block, y, k)
    for i in range(n):
        rate[nq + i, k] = acting.joints[GIVEN_QDD, i, k]
        row = acting.shared.drives[INTEGRAL, i]
        if row >= 0:
            rate[row, k] = acting.values[acting.shared.drives[SIGNAL, i], VALUE, k] - q[block.model.coordinate[i], k]


@kernel
def sweep_under_drives(sweep, block, y, k):
    """Run one sweep: the controllers' sweeps use the controllers' model, the motion that of the mechanism."""
    acting, joints, nq, n = block.loads.acting, block.loads.acting.joints, block.q.shape[0], block.qd.shape[0]
    acting.external[0] = 1 if sweep == MOTION_SWEEP else 0
    model = block.model if sweep == MOTION_SWEEP else acting.model
    if acting.shared.settings[COMPENSATES] == 1 or acting.shared.settings[COMPUTES] == 1:
        apply_gravity(model, block.work, k)
    for i in range(n):
        command_joint(i, sweep, block, y, k)
    if sweep == MOTION_SWEEP and acting.shared.settings[IMPLICIT] == 1:
        note_slopes(block, y, k)
        for i in range(n):
            yield_to_step(i, block, y[nq + i, k], k)
    q, found = y[:nq], joints[GIVEN_QDD]
    if sweep == MOTION_SWEEP and acting.shared.settings[FORCED] == 0:
        forward_dynamics(block.model, q, y[nq : nq + n], block.loads, found, block.work, k)
        return
    hybrid_dynamics(model, q, joints[SPEED], block.loads, found, joints[PRESCRIBED], block.work, k)
    for i in range(n):
        heed(i, sweep, block, k)


@kernel
def force_joint(i, model, acting, q, qd, k):
    """Put a joint whose position or velocity is prescribed where it must be."""
    kind, s = acting.shared.drives[KIND, i], acting.shared.drives[SIGNAL, i]
    if kind == PRESCRIBED_POSITION:
        q[model.coordinate[i], k] = acting.values[s, VALUE, k]
        qd[i, k] = acting.values[s, RATE, k]
    elif kind == PRESCRIBED_VELOCITY:
        qd[i, k] = acting.values[s, VALUE, k]


@kernel
def note_slopes(block, y, k):
    """By how much each joint's force, its motor's included, falls per unit of position and of velocity."""
    acting, model, nq = block.loads.acting, block.model, block.q.shape[0]
    q, qd = y[:nq], y[nq : nq + block.qd.shape[0]]
    for i in range(block.qd.shape[0]):
        hardness, slope = passive_slopes(i, model, q, qd, k)
        if acting.shared.drives[KIND, i] == PID:
            gains, given = acting.shared.drives[GAINS, i], acting.joints[MOTOR, i, k]
            within = abs(given) < acting.numbers[gains + LIMIT, k]
            kp, kd = acting.numbers[gains + KP, k], acting.numbers[gains + KD, k]
            hardness, slope = hardness + select(within, kp, kp - kp), slope + select(within, kd, kd - kd)
        acting.joints[HARDNESS, i, k] = hardness
        acting.joints[SLOPE, i, k] = slope


@kernel
def ask_user(acting, nq, n, y, lane):
    """Joint forces from the user's function, for the chain of one lane."""
    settings, memory = acting.shared.settings, acting.call
    first, count = settings[FUNCTION_NUMBERS], settings[FUNCTION_COUNT]
    parameters = nq + n
    out = parameters + count
    for j in range(n):
        acting.joints[CUSTOM, j, lane] = like(acting.joints, 0.0)
    if acting.failures[lane] != CALLABLE:
        return
    for j in range(nq + n):
        memory[j] = y[j, lane]
    for j in range(count):
        memory[parameters + j] = acting.numbers[first + j, lane]
    for j in range(n):
        memory[out + j] = 0.0
    t = float(acting.time[0, lane])
    failed = call(
        settings[FUNCTION], t, memory[:nq], memory[nq:parameters], memory[parameters:out], memory[out : out + n]
    )
    if failed != 0:
        note_failed_call(acting, USER_FORCES, t, y, lane)
        return
    for j in range(n):
        acting.joints[CUSTOM, j, lane] = like(acting.joints, memory[out + j])


@kernel
def command_joint(i, sweep, block, y, k):
    """Set what is given of joint i in a sweep: its force, or its acceleration."""
    acting, joints, kind = block.loads.acting, block.loads.acting.joints, block.loads.acting.shared.drives[KIND, i]
    zero, one, v = like(joints, 0.0), like(joints, 1.0), y[block.q.shape[0] + i, k]
    if acting.shared.settings[IMPLICIT] == 1:
        joints[YIELDING, i, k] = zero
    if sweep == GRAVITY_SWEEP:
        joints[SPEED, i, k] = zero
        joints[PRESCRIBED, i, k] = one
        joints[GIVEN_QDD, i, k] = zero
        return
    joints[SPEED, i, k] = v
    forced = kind in FORCED_KINDS
    joints[PRESCRIBED, i, k] = one if forced or (kind == COMPUTED_TORQUE and sweep == MODEL_SWEEP) else zero
    if forced:
        order = VALUE if kind == PRESCRIBED_ACCELERATION else RATE if kind == PRESCRIBED_VELOCITY else ACCELERATION
        joints[GIVEN_QDD, i, k] = acting.values[acting.shared.drives[SIGNAL, i], order, k]
    elif kind == COMPUTED_TORQUE and sweep == MODEL_SWEEP:
        s = acting.shared.drives[SIGNAL, i]
        joints[GIVEN_QDD, i, k] = acting.values[s, ACCELERATION, k] + feedback(i, block, y, k)
    else:
        motor = motor_force(i, block, y, k)
        joints[MOTOR, i, k] = motor
        block.loads.tau[i, k] = motor
        if sweep == MOTION_SWEEP:
            block.loads.tau[i, k] = motor + joints[OWN_FORCE, i, k]


@kernel
def feedback(i, block, y, k):
    """KP e + KI integral of e + KD de/dt of a joint's error e."""
    acting, model, nq = block.loads.acting, block.model, block.q.shape[0]
    s, gains, row = acting.shared.drives[SIGNAL, i], acting.shared.drives[GAINS, i], acting.shared.drives[INTEGRAL, i]
    error = acting.values[s, VALUE, k] - y[model.coordinate[i], k]
    rate = acting.values[s, RATE, k] - y[nq + i, k]
    total = acting.numbers[gains + KP, k] * error + acting.numbers[gains + KD, k] * rate
    if row >= 0:
        total = total + acting.numbers[gains + KI, k] * y[row, k]
    return total


@kernel
def motor_force(i, block, y, k):
    """What the motor of joint i gives, within its limit."""
    acting, joints = block.loads.acting, block.loads.acting.joints
    kind, gains = acting.shared.drives[KIND, i], acting.shared.drives[GAINS, i]
    force = joints[CONSTANT_FORCE, i, k]
    if acting.shared.settings[FUNCTION] != 0:
        force = force + joints[CUSTOM, i, k]
    if kind == NONE:
        return force
    if kind == FORCE:
        force = force + acting.values[acting.shared.drives[SIGNAL, i], VALUE, k]
    elif kind == PID:
        force = force + feedback(i, block, y, k)
    elif kind == COMPUTED_TORQUE:
        force = force + joints[COMPUTED_FORCE, i, k]
    if acting.shared.drives[COMPENSATED, i] == 1:
        force = force + joints[WEIGHT, i, k]
    limit = acting.numbers[gains + LIMIT, k]
    return min(max(force, -limit), limit)


@kernel
def yield_to_step(i, block, v, k):
    """Let joint i feel the end of the step: (M + h D + h^2 K) qdd = tau - h K qd."""
    joints = block.loads.acting.joints
    h, hardness = joints[STEP_LENGTH, 0, k], joints[HARDNESS, i, k]
    joints[YIELDING, i, k] = h * (joints[SLOPE, i, k] + h * hardness)
    block.loads.tau[i, k] = block.loads.tau[i, k] - h * hardness * v


@kernel
def heed(i, sweep, block, k):
    """Keep what a sweep has found of joint i: what a controller wanted to know, or what a forced motion took."""
    acting, found = block.loads.acting, block.loads.tau[i, k]
    joints, kind = acting.joints, acting.shared.drives[KIND, i]
    if sweep == GRAVITY_SWEEP:
        joints[WEIGHT, i, k] = found
    elif sweep == MODEL_SWEEP:
        joints[COMPUTED_FORCE, i, k] = found
    elif kind in FORCED_KINDS:
        joints[MOTOR, i, k] = found - joints[OWN_FORCE, i, k]
