"""Derivatives of the forces that controllers compute with their model: gravity compensation and computed torque.

With the inverse dynamics ID and the mass matrix M of the controllers' model, without wrenches, springs and drag:

    gravity compensation:  F = ID(q, 0, 0),     dF/dq = dID/dq
    computed torque:       F = ID(q, qd, a),    dF/dq = dID/dq - M KP,  dF/dqd = dID/dqd - M KD,  dF/dz = M KI

a is the acceleration of the reference plus the feedback, and z are the integrals of the control errors. The derivative
of a force at its limit is zero.
"""

from ..algorithms.derivatives import BY_INPUT, BY_Q, BY_QD, inverse_dynamics_derivatives
from ..forces.signals import SIGNAL_ACCELERATION
from ..simd.jit import choose, is_given, kernel, routine
from ..simd.lanes import constant_like
from ..tree.layout import SETTING_COMPENSATES, SETTING_COMPUTES, SETTING_EXTERNAL_FORCES, apply_gravity
from .constraint_hooks import has_constraints
from .drives import (
    DRIVE_COMPENSATES_GRAVITY,
    DRIVE_GAINS,
    DRIVE_INTEGRAL,
    DRIVE_KIND,
    DRIVE_SIGNAL,
    GAIN_KD,
    GAIN_KI,
    GAIN_KP,
    KIND_COMPUTED_TORQUE,
    feedback,
    is_below_limit,
)


@kernel
def have_known_derivatives(block):
    """Whether the derivatives of all forces that controllers compute with their model are known.

    Those of computed torque are known if it drives all dofs. In water, none are.
    """
    actions = block.loads.actions
    if actions.settings[SETTING_COMPENSATES] == 0 and actions.settings[SETTING_COMPUTES] == 0:
        return True
    if block.model.water is not None:
        return False
    if actions.settings[SETTING_COMPUTES] == 1:
        for i in range(block.qd.shape[0]):
            if actions.shared.drives[DRIVE_KIND, i] != KIND_COMPUTED_TORQUE:
                return False
    return True


@routine
def differentiate_inverse_dynamics(block, model, q, qd, qdd, linear, k):
    """Set `linear.derivatives` to those of the inverse dynamics of a model: of the mechanism or of the controllers.

    Overwrites loads.tau.
    """
    derivatives, n = linear.derivatives, block.qd.shape[0]
    for by in range(3):
        for i in range(n):
            for j in range(n):
                derivatives[by, i, j, k] = constant_like(q, 0.0) * q[0, k]
    inverse_dynamics_derivatives(model, q, qd, qdd, block.loads, derivatives, linear.dofs, block.work, k)


@kernel
def add_gravity_compensation(block, linear, y, k):
    """Add the derivatives of gravity compensation to those of all forces."""
    nq, n, actions = block.q.shape[0], block.qd.shape[0], block.loads.actions
    for i in range(n):
        linear.direction[i, k] = constant_like(y, 0.0) * y[0, k]
    differentiate_inverse_dynamics(block, actions.model, y[:nq], linear.direction, linear.direction, linear, k)
    for i in range(n):
        if actions.shared.drives[DRIVE_COMPENSATES_GRAVITY, i] == 1:
            varies = is_below_limit(i, block, y, k)
            for j in range(n):
                change = varies * linear.derivatives[BY_Q, i, j, k]
                linear.of_forces[BY_Q, i, j, k] = linear.of_forces[BY_Q, i, j, k] + change


@kernel
def add_computed_torque(block, linear, y, k):
    """Add the derivatives of computed torque to those of all forces, and store those by integrals in C."""
    nq, n, actions, of_forces = block.q.shape[0], block.qd.shape[0], block.loads.actions, linear.of_forces
    drives, derivatives = actions.shared.drives, linear.derivatives
    for i in range(n):
        acceleration = actions.values[drives[DRIVE_SIGNAL, i], SIGNAL_ACCELERATION, k]
        linear.direction[i, k] = acceleration + feedback(i, block, y, k)
    differentiate_inverse_dynamics(block, actions.model, y[:nq], y[nq : nq + n], linear.direction, linear, k)
    for i in range(n):
        varies = is_below_limit(i, block, y, k)
        for j in range(n):
            gains, row, M = drives[DRIVE_GAINS, j], drives[DRIVE_INTEGRAL, j], derivatives[BY_INPUT, i, j, k]
            by_q = derivatives[BY_Q, i, j, k] - M * actions.numbers[gains + GAIN_KP, k]
            by_qd = derivatives[BY_QD, i, j, k] - M * actions.numbers[gains + GAIN_KD, k]
            of_forces[BY_Q, i, j, k] = of_forces[BY_Q, i, j, k] + varies * by_q
            of_forces[BY_QD, i, j, k] = of_forces[BY_QD, i, j, k] + varies * by_qd
            if row >= 0:
                linear.by_integral[i, row - nq - n, k] = varies * M * actions.numbers[gains + GAIN_KI, k]


@kernel
def add_derivatives_of_both(block, linear, y, k):
    """Add the derivatives of the forces of controllers to `linear.of_forces` and `linear.by_integral`.

    Overwrites `linear.derivatives`, `linear.direction` and loads.tau.
    """
    actions = block.loads.actions
    if actions.settings[SETTING_COMPENSATES] == 0 and actions.settings[SETTING_COMPUTES] == 0:
        return
    actions.settings[SETTING_EXTERNAL_FORCES] = 0
    apply_gravity(actions.model, block.work, k)
    if actions.settings[SETTING_COMPENSATES] == 1:
        add_gravity_compensation(block, linear, y, k)
    if actions.settings[SETTING_COMPUTES] == 1:
        add_computed_torque(block, linear, y, k)
    actions.settings[SETTING_EXTERNAL_FORCES] = 1
    apply_gravity(block.model, block.work, k)


def _has_controllers_with_model(block, *_):
    """Whether a controller may use its model: not in closed chains. In water, its derivatives are not known."""
    return is_given(block, "loads", "actions") and not (has_constraints(block) or is_given(block, "model", "water"))


# Add the derivatives of the forces of controllers.
add_derivatives_of_controllers = choose(
    _has_controllers_with_model,
    add_derivatives_of_both,
    lambda block, linear, y, k: None,
)
