"""The constraints of a closed loop in the integrators: dynamics, and the projection at the end of each step.

Each function has two forms, for closed and for open chains. `choose` selects one of them at compile time.

`q`, `qd` and `qdd` are as in `constraint_layout`. y (rows, lanes) is a state of the integrator: the rows of q, the rows
of qd, then other rows. `linear` is a `core.linear.linearized_rate.LinearizedRate`.
"""

import math

from ...compiling.jit import choose, is_given, kernel, only_if
from ..algorithms.aba import forward_dynamics
from ..algorithms.derivatives import BY_Q, BY_QD
from ..algorithms.hybrid import hybrid_dynamics
from ..lanes.lanes import any_lane, constant_like, epsilon, full_like, select
from . import constrained_dynamics, constraint_layout as closure, equation_layout as equation
from .constrained_derivatives import project_derivatives, store_reactions
from .constraint_factors import DEPENDENT_ROW_FACTOR
from .derivatives_of_constraints import differentiate_constraints


def has_constraints(block, *_):
    """Whether a block, or the Numba type of a block, has constraints."""
    return is_given(block, "constraints")


@kernel
def forward_dynamics_of_closed_chain(block, q, qd, qdd, k):
    """Compute qdd (n, lanes) of a closed loop from q (nq, lanes) and qd (n, lanes)."""
    constrained_dynamics.constrained_forward_dynamics(
        block.model, block.constraints, q, qd, block.loads, qdd, block.work, k
    )


@kernel
def forward_dynamics_of_open_chain(block, q, qd, qdd, k):
    """Compute qdd (n, lanes) of an open chain from q (nq, lanes) and qd (n, lanes)."""
    forward_dynamics(block.model, q, qd, block.loads, qdd, block.work, k)


# Compute the accelerations qdd in the state (q, qd) under the loads of the block.
forward_dynamics_of_block = choose(has_constraints, forward_dynamics_of_closed_chain, forward_dynamics_of_open_chain)


@kernel
def hybrid_dynamics_of_closed_chain(block, q, qd, qdd, prescribed, k):
    """Compute qdd and tau (n, lanes) of a closed loop; `prescribed` (n, lanes) is 1 for dofs whose qdd is given."""
    constrained_dynamics.constrained_hybrid_dynamics(
        block.model, block.constraints, q, qd, block.loads, qdd, prescribed, block.work, k
    )


@kernel
def hybrid_dynamics_of_open_chain(block, q, qd, qdd, prescribed, k):
    """Compute qdd and tau (n, lanes) of an open chain; `prescribed` (n, lanes) is 1 for dofs whose qdd is given."""
    hybrid_dynamics(block.model, q, qd, block.loads, qdd, prescribed, block.work, k)


# Compute the accelerations that are not prescribed, and the forces of the dofs with a prescribed acceleration.
hybrid_dynamics_of_block = choose(has_constraints, hybrid_dynamics_of_closed_chain, hybrid_dynamics_of_open_chain)


@kernel
def hybrid_dynamics_of_closed_controllers(block, model, q, qd, qdd, prescribed, k):
    """Run `hybrid_dynamics_of_closed_chain` with the controllers' model.

    It decides which rows are independent, because other dofs move than in the motion. The motion keeps its own choice.
    """
    rows, flags = block.constraints.rows, block.constraints.flags
    decides = flags[closure.FLAG_DECIDES, k]
    for row in range(rows.shape[0]):
        rows[row, equation.MOTION_KEPT, k] = rows[row, equation.KEPT, k]
    flags[closure.FLAG_DECIDES, k] = full_like(decides, 1.0)
    constrained_dynamics.constrained_hybrid_dynamics(
        model, block.constraints, q, qd, block.loads, qdd, prescribed, block.work, k
    )
    flags[closure.FLAG_DECIDES, k] = decides
    for row in range(rows.shape[0]):
        rows[row, equation.KEPT, k] = rows[row, equation.MOTION_KEPT, k]


@kernel
def hybrid_dynamics_of_open_controllers(block, model, q, qd, qdd, prescribed, k):
    """Run `hybrid_dynamics_of_open_chain` with the controllers' model."""
    hybrid_dynamics(model, q, qd, block.loads, qdd, prescribed, block.work, k)


# The same with the controllers' model, between two evaluations of the motion.
hybrid_dynamics_of_controllers = choose(
    has_constraints, hybrid_dynamics_of_closed_controllers, hybrid_dynamics_of_open_controllers
)


@only_if(has_constraints)
@kernel
def decide_rank(block, decides, k):
    """Make the next evaluations decide which rows are independent, in the lanes in which `decides` is positive.

    `decides` is one value for each lane.
    """
    block.constraints.flags[closure.FLAG_DECIDES, k] = decides


@kernel
def project_end_of_step(block, y, active, k):
    """Project the end y (rows, lanes) of a step in the lanes in which `active` is positive."""
    nq = block.q.shape[0]
    q, qd = y[:nq], y[nq : nq + block.qd.shape[0]]
    constrained_dynamics.project_state(block.model, block.constraints, q, qd, block.work, active, True, k)


@kernel
def needs_new_factors(block, k):
    """Whether a projection did not converge, in any lane, with the factors of the last dynamics."""
    flags = block.constraints.flags
    return any_lane(flags[closure.FLAG_OPEN, k] == constant_like(flags, 1.0))


@kernel
def project_end_with_new_factors(block, y, k):
    """Project the end y (rows, lanes) again in the lanes that need new factors, which the dynamics at y provide."""
    flags = block.constraints.flags
    project_lanes_again(block, y, flags[closure.FLAG_OPEN, k] == constant_like(flags, 1.0), k)


@only_if(has_constraints)
@kernel
def project_corrected_end(block, y, is_corrected, k):
    """Project the end y (rows, lanes) of a step again in lanes whose positions have been corrected since.

    Lanes that do not satisfy the constraints stay as they are.
    """
    flags = block.constraints.flags
    project_lanes_again(block, y, is_corrected & (flags[closure.FLAG_OPEN, k] == constant_like(flags, 0.0)), k)


@kernel
def project_lanes_again(block, y, is_chosen, k):
    """Project the end y (rows, lanes) of a step in the chosen lanes; the others keep their FLAG_OPEN."""
    flags = block.constraints.flags
    reason, zero, one = flags[closure.FLAG_OPEN, k], constant_like(flags, 0.0), constant_like(flags, 1.0)
    project_end_of_step(block, y, select(is_chosen, one, zero), k)
    flags[closure.FLAG_OPEN, k] = select(is_chosen, flags[closure.FLAG_OPEN, k], reason)


@kernel
def closed_lanes(block, accepted, k):
    """Return a positive number for the lanes with an accepted step whose end satisfies the constraints.

    `accepted` is 1 in the lanes with an accepted step, else 0.
    """
    return accepted - block.constraints.flags[closure.FLAG_OPEN, k]


@only_if(has_constraints)
@kernel
def reduce_error(block, y_new, change, k):
    """Remove the part that the projection corrects from `change` (rows, lanes), the error of a step that ends at y_new.

    Changes the rows of q and qd only.
    """
    nq = block.q.shape[0]
    end = nq + block.qd.shape[0]
    constrained_dynamics.remove_normal_part(
        block.model, block.constraints, y_new[:nq], change[:nq], change[nq:end], block.work, k
    )


# A step whose end has a FLAG_CONDITION below epsilon to this power is shortened, if its start is further away from the
# singular configuration, because round-off dominates accelerations near it. The next step then passes it.
AVOIDED_CONDITION = 0.2
APPROACH, MAX_AVOIDED = 0.25, 3
# The same if fewer rows are independent at the end. Only a motion that comes to rest there ends there again and again.
MAX_AVOIDED_LOSSES = 10


@kernel
def is_end_near_singularity(block, lane):
    """Whether to repeat a step that ends near a singular configuration; otherwise record its end as the next start.

    Sets FLAG_LOST_RANK.
    """
    flags, rows = block.constraints.flags, block.constraints.rows
    condition, start = float(flags[closure.FLAG_CONDITION, lane]), float(flags[closure.FLAG_START_CONDITION, lane])
    avoided, lost = float(flags[closure.FLAG_AVOIDED, lane]), 0.0
    for row in range(rows.shape[0]):
        lost += float(rows[row, equation.START_KEPT, lane]) - float(rows[row, equation.KEPT, lane])
    if lost > 0.0:  # FLAG_CONDITION is the condition of the remaining rows
        condition = min(condition, math.sqrt(DEPENDENT_ROW_FACTOR * epsilon(block.q)))
    approaches = condition < APPROACH * start
    flags[closure.FLAG_LOST_RANK, lane] = constant_like(flags, 1.0 if lost > 0.0 and approaches else 0.0)
    most = MAX_AVOIDED_LOSSES if lost > 0.0 else MAX_AVOIDED
    if condition < epsilon(block.q) ** AVOIDED_CONDITION and approaches and avoided < most:
        flags[closure.FLAG_AVOIDED, lane] = constant_like(flags, avoided + 1.0)
        return True
    record_start(block, lane)
    return False


@only_if(has_constraints)
@kernel
def record_start(block, lane):
    """Record the condition and the independent rows of the last dynamics of a lane, at the start of a step."""
    flags, rows = block.constraints.flags, block.constraints.rows
    flags[closure.FLAG_AVOIDED, lane] = constant_like(flags, 0.0)
    flags[closure.FLAG_START_CONDITION, lane] = flags[closure.FLAG_CONDITION, lane]
    for row in range(rows.shape[0]):
        rows[row, equation.START_KEPT, lane] = rows[row, equation.KEPT, lane]


@only_if(has_constraints)
@kernel
def record_starts(block, starts):
    """Record the starts of steps of the lanes in which `starts` (lanes,) is positive; of all lanes if it is None."""
    for lane in range(block.q.shape[1]):
        if starts is None or starts[lane] > constant_like(block.q, 0.0):
            record_start(block, lane)


@only_if(has_constraints)
@kernel
def restore_rows_of_start(block, lane):
    """Restore the selection of independent rows at the start of a step, because the step is repeated."""
    rows = block.constraints.rows
    for row in range(rows.shape[0]):
        rows[row, equation.KEPT, lane] = rows[row, equation.START_KEPT, lane]


@only_if(has_constraints, False)
@kernel
def has_lost_rank(block, lane):
    """Whether a step of a lane ends in a singular configuration, where the rows do not determine its velocities."""
    return block.constraints.flags[closure.FLAG_LOST_RANK, lane] > constant_like(block.q, 0.0)


@only_if(has_constraints, False)
@kernel
def has_open_loops(block, lane):
    """Whether the state of a lane could not be projected onto the constraints."""
    return block.constraints.flags[closure.FLAG_OPEN, lane] > constant_like(block.q, 0.0)


# --- derivatives ------------------------------------------------------------------------------------------------------


@only_if(has_constraints)
@kernel
def begin_derivatives_of_constraints(block, linear, k):
    """Store the multipliers of the last dynamics and the responses to the constraints, before their derivatives.

    Writes `linear.of_constraints`, a ConstraintDerivatives.
    """
    store_reactions(block.model, block.constraints, linear.of_constraints, block.work, k)


@only_if(has_constraints)
@kernel
def subtract_derivatives_of_constraints(block, linear, k):
    """Compute the derivatives of the rows, and subtract the derivatives of the forces of the constraints from K.

    Reads the results of `inverse_dynamics_derivatives`.
    """
    differentiate_constraints(
        block.model, block.constraints, linear.of_constraints, linear.derivatives, linear.dofs, block.work, k
    )


@only_if(has_constraints)
@kernel
def project_linearized_rate(block, linear, k):
    """Replace K, D and C of the open tree by K, D and C of the closed loop (`constrained_derivatives`).

    K and D are in `linear.derivatives`, C is `linear.by_integral` (n, integrals, lanes). Overwrites `by_q`, `by_qd` and
    `by_integral` of `linear.of_constraints`.
    """
    parts = linear.of_constraints
    project_derivatives(linear.derivatives[BY_Q], parts.by_q, parts, k)
    project_derivatives(linear.derivatives[BY_QD], parts.by_qd, parts, k)
    for row in range(parts.by_integral.shape[0]):
        for column in range(parts.by_integral.shape[1]):
            parts.by_integral[row, column, k] = constant_like(parts.by_integral, 0.0)
    project_derivatives(linear.by_integral, parts.by_integral, parts, k)
