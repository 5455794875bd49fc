"""The linear systems of a linearly implicit step of an open tree, solved along the tree in O(n) operations.

The matrix of the step is T = a M + D + K X + C E / a^2, and the system is T w = M s - K t + C p (`linearized_rate`,
where t is T u_0). K and D consist of the derivatives of `algorithms.derivatives` and of the derivatives of the joint
forces, which are diagonal. `algorithms.derivatives` defines S', P' and P''. An increment w_j changes the motion of the
bodies that dof j carries. With sums over the dofs i of the joint of dof j, where X has entries, the changes are

    x_j = sum of X_ij S_i,   v_j = S_j + sum of X_ij P'_i,   a_j = a S_j + P'_j + S'_j + sum of X_ij P''_i

of the pose, the velocity and the acceleration. The given increments change it by S_j t_j, P'_j t_j and
P''_j t_j - S_j s_j. Let x, V and A be the changes of the motion of dof i and its ancestors. Then the force through the
joint of dof i changes by

    f_i = I_i A_i + 2 B_i V_i + sum over the children j of (f_j + x_j x* F_j),

where F_j is the force through the joint of dof j, which turns with the bodies that it carries. Spherical and free
joints, which are at roots, pass no force to a parent, and have no term x_j x* F_j between their dofs. The system is
S_i . f_i + d_i w_i = e_i with the derivatives d_i of the joint forces. As the articulated-body algorithm eliminates
accelerations, an inward sweep eliminates the w_i. With f_i = G_i (A_p, V_p) + phi_i, where p is the parent,

    U_i = G_i (a_i, v_i),   D_i = S_i . U_i + d_i,   w_i = (e_i - S_i . phi_i - S_i . G_i (A_p, V_p)) / D_i,

the parent receives G_i - (U_i + x_i x* F_i) (S_i^T G_i) / D_i. Pivoting is omitted: for short steps, D_i is the
inertia of the dof times a. For long steps of an unstable mechanism, D_i can be close to zero. The error of the
increments is then large, and so is the estimate of the error, which rejects the step.

Sources: Featherstone (2008), chapter 7; Singh, Russell and Wensing (2022), as in `algorithms.derivatives`.
"""

from ...compiling.jit import is_given, kernel, only_if, routine
from ..algorithms.coriolis import SCRATCH_B, load_coriolis, start_composites
from ..algorithms.derivatives import SCRATCH_PSIDDOT, SCRATCH_PSIDOT, SCRATCH_PSIDOT_PLUS_SDOT, store_axis_rates
from ..algorithms.rnea import apply_newton_euler, pass_force
from ..contacts.contact_rates import has_contact_modes
from ..control.drive_slopes import derivative_by_integral, derivatives_of_joint_force
from ..lanes.lanes import constant_like
from ..loops.constraint_hooks import has_constraints
from ..sample.rate import integral_row, next_drive
from ..spatial.force_maps import (
    CHANGE_ROWS,
    FORCE_MAP_ROWS,
    MotionChange,
    add_changes,
    add_maps,
    load_change,
    load_map,
    map_at_root,
    map_of_body,
    map_times,
    power_of_map,
    product_of_changes,
    store_change,
    store_map,
    subtract_force_of_row,
)
from ..spatial.storage import load3, load_force, load_motion, load_rigid, store3, store_spatial
from ..spatial.vectors import (
    add_forces,
    add_motions,
    cross_force,
    force_at_root,
    motion_at_tip,
    power,
    scale3,
    scale_force,
    scale_motion,
)
from ..tree import frame_layout as frame, parameter_layout as param, setting_layout as setting
from ..tree.kinematics import axis_motion, move_dof
from ..tree.layout import POSING_CARRIED, POSING_OWN, has_actions, parameter

# Trees with fewer dofs are solved with a matrix, which takes less time (`benchmarks/stiff.py`).
FEWEST_DOFS = 24

# Rows of a dof in the memory of this module. The stages overwrite the memory of the dynamics.
TREE_MAP = 0  # G
TREE_AXIS = TREE_MAP + FORCE_MAP_ROWS  # S
TREE_LEVER = TREE_AXIS + 6
TREE_TURNED = TREE_LEVER + 3  # S x* F
TREE_UNIT = TREE_TURNED + 6  # the change (a, v) of the motion by a unit increment
TREE_ROW = TREE_UNIT + CHANGE_ROWS  # S^T G
TREE_PASSED = TREE_ROW + CHANGE_ROWS  # the force that the parent receives by a unit increment
TREE_DINV = TREE_PASSED + 6  # 1 / D
TREE_STIFFNESS = TREE_DINV + 1  # minus the derivative of the joint force with respect to q
TREE_DAMPING = TREE_STIFFNESS + 1  # the same for qd
TREE_INTEGRAL = TREE_DAMPING + 1  # the sum of the derivatives with respect to the integrals of its errors
TREE_FORCE = TREE_INTEGRAL + 1  # phi
TREE_CHANGE = TREE_FORCE + 6  # the change (A, V) of the motion
TREE_ROWS = TREE_CHANGE + CHANGE_ROWS


# --- which steps are solved along the tree ----------------------------------------------------------------------------


@only_if(has_actions, True)
@kernel
def _has_only_joint_forces(block):
    """Whether each force of the actions depends only on the state of its dof, and no motion is prescribed."""
    settings, wrenches = block.loads.actions.settings, block.loads.actions.shared.wrenches
    uses_model = settings[setting.COMPENSATES] != 0 or settings[setting.COMPUTES] != 0
    has_others = settings[setting.FUNCTIONS] > 0 or wrenches.shape[1] > 0
    return not (uses_model or has_others or settings[setting.HYBRID] != 0)


@kernel
def has_quaternions_at_roots_only(model):
    """Whether all spherical and free joints are at roots."""
    n, found = model.parent.shape[0], True
    for i in range(n):
        found = found and (model.posing[i] == POSING_OWN or model.parent[model.first[i]] == n)
    return found


def _may_follow_tree(block, linear, *_):
    in_water, between_bodies = is_given(block, "model", "water"), False
    if is_given(block, "loads", "actions"):
        between_bodies = is_given(block, "loads", "actions", "between_bodies")
    others = has_constraints(block) or has_contact_modes(block) or in_water or between_bodies
    return is_given(linear, "tree") and not others


@only_if(_may_follow_tree, False)
@kernel
def follows_tree(block, linear):
    """Whether a tree has FEWEST_DOFS, only forces of joints, and spherical and free joints at its roots only."""
    is_long = block.model.parent.shape[0] >= FEWEST_DOFS  # short trees must not pay for the other conditions
    return is_long and _has_only_joint_forces(block) and has_quaternions_at_roots_only(block.model)


# --- derivatives ------------------------------------------------------------------------------------------------------


@only_if(_may_follow_tree)
@routine
def linearize_tree(block, linear, y, rate, k):
    """Compute the inertias, B, axes and forces in the matrix for the state y, whose rate is `rate`.

    y and `rate` are (rows, lanes). Writes `linear.tree` (n, TREE_ROWS, lanes) and `linear.dofs` (n, rows, lanes).
    """
    nq, n, model, loads, tree = block.q.shape[0], block.qd.shape[0], block.model, block.loads, linear.tree
    q, qd, qdd = y[:nq], y[nq : nq + n], rate[nq : nq + n]
    for i in range(n):
        linear.tangent[i, k] = loads.tau[i, k]
        move_dof(i, model, q, qd, block.work, k)
        start_composites(i, model, linear.dofs, block.work, k)
        apply_newton_euler(i, model, qd, qdd, loads, block.work, k)
        store_axis_rates(i, model, linear.dofs, block.work, k)
    for i in range(n - 1, -1, -1):
        pass_force(i, model, qdd, loads, block.work, k)
    for i in range(n):
        loads.tau[i, k] = linear.tangent[i, k]
        store_joint(i, model, tree, block.work, k)
        store_derivatives_of_joint(i, block, linear, y, k)


@kernel
def store_joint(i, model, tree, work, k):
    """Store the axis of dof i, the lever, and the change S x* F of the force through the joint, which turns with S.

    This change is zero for spherical and free joints, which are at roots and pass no force. `tree` is
    (n, TREE_ROWS, lanes). Vectors are in world axes, at the joint origin.
    """
    S, r = axis_motion(i, model, work, k), load3(work.dof, i, frame.LEVER, k)
    store_spatial(tree, i, TREE_AXIS, k, S)
    store3(tree, i, TREE_LEVER, k, r)
    turned = cross_force(S, load_force(work.dof, i, frame.F, k))
    x = constant_like(tree, 1.0 if model.posing[i] == POSING_OWN else 0.0)
    store_spatial(tree, i, TREE_TURNED, k, scale_force(x, turned))


@kernel
def store_zeros(i, block, linear, y, k):
    """Set the derivatives of the joint force of dof i in `linear.tree` (n, TREE_ROWS, lanes) to zero."""
    for row in range(TREE_STIFFNESS, TREE_INTEGRAL + 1):
        linear.tree[i, row, k] = constant_like(linear.tree, 0.0)


@only_if(lambda i, block, *_: is_given(block, "loads", "actions"), otherwise=store_zeros)
@kernel
def store_derivatives_of_joint(i, block, linear, y, k):
    """Store the derivatives of the joint force of dof i.

    Writes `linear.tree` (n, TREE_ROWS, lanes) and `linear.by_integral` (n, integrals, lanes). y is (rows, lanes).
    """
    tree, first = linear.tree, block.q.shape[0] + block.qd.shape[0]
    by_q, by_qd = derivatives_of_joint_force(i, block, y, k)
    # passive forces and drives do not depend on the positions of spherical and free joints
    own = constant_like(y, 1.0 if block.model.posing[i] == POSING_OWN else 0.0)
    tree[i, TREE_STIFFNESS, k], tree[i, TREE_DAMPING, k] = -own * by_q, -by_qd
    tree[i, TREE_INTEGRAL, k] = constant_like(y, 0.0)
    d = i
    while d >= 0:
        row = integral_row(block, d)
        if row >= 0:
            by_integral = derivative_by_integral(d, block, y, k)
            linear.by_integral[i, row - first, k] = by_integral
            tree[i, TREE_INTEGRAL, k] = tree[i, TREE_INTEGRAL, k] + by_integral
        d = next_drive(block, d)


# --- factorization ----------------------------------------------------------------------------------------------------


@only_if(_may_follow_tree)
@routine
def start_unit_changes(block, linear, a, k):
    """Store the changes of the motion by unit increments w, without changes of the positions; a = 1 / (gamma h).

    a is a number, 1/s. Writes MotionChanges to `linear.tree` (n, TREE_ROWS, lanes).
    """
    n, tree, dofs = block.qd.shape[0], linear.tree, linear.dofs
    for i in range(n):
        S = load_motion(tree, i, TREE_AXIS, k)
        A = add_motions(scale_motion(a, S), load_motion(dofs, i, SCRATCH_PSIDOT_PLUS_SDOT, k))
        store_change(tree, i, TREE_UNIT, k, MotionChange(A, S.ang))
        for row in range(FORCE_MAP_ROWS):
            tree[i, TREE_MAP + row, k] = constant_like(tree, 0.0)


@only_if(_may_follow_tree)
@kernel
def add_change_of_position(block, linear, j, i, x, k):
    """Add x times the change by the position of dof i to the change by a unit increment of dof j.

    x is a number. The changes are MotionChanges in `linear.tree` (n, TREE_ROWS, lanes).
    """
    tree, dofs, unit = linear.tree, linear.dofs, load_change(linear.tree, j, TREE_UNIT, k)
    store_change(tree, j, TREE_UNIT, k, add_changes(unit, change_of_position(dofs, i, x, k)))


@kernel
def change_of_position(dofs, i, x, k):
    """Return the change of the motion of the bodies that dof i carries by x times its position.

    x is a number. `dofs` (n, rows, lanes) has P' and P''. The result is a MotionChange in world axes, at the joint
    origin.
    """
    psidot, psiddot = load_motion(dofs, i, SCRATCH_PSIDOT, k), load_motion(dofs, i, SCRATCH_PSIDDOT, k)
    return MotionChange(scale_motion(x, psiddot), scale3(x, psidot.ang))


@only_if(_may_follow_tree)
@routine
def eliminate_along_tree(block, linear, a, k):
    """Eliminate the increments of all dofs in `linear.tree` (n, TREE_ROWS, lanes); a is a number, 1/s."""
    for i in range(block.qd.shape[0] - 1, -1, -1):
        eliminate_dof(i, block, linear, a, k)


@kernel
def eliminate_dof(i, block, linear, a, k):
    """Eliminate the increment of dof i, and pass the rest of its map to the parent.

    `linear.tree` (n, TREE_ROWS, lanes) has the maps; a is a number, 1/s.
    """
    model, tree, dofs = block.model, linear.tree, linear.dofs
    body, B = load_rigid(dofs, i, 0, k), load_coriolis(dofs, i, SCRATCH_B, k)
    G = add_maps(load_map(tree, i, TREE_MAP, k), map_of_body(body.m, body.h, body.J, B.Q, B.P))
    S, inverse = load_motion(tree, i, TREE_AXIS, k), constant_like(a, 1.0) / a
    row, U = power_of_map(G, S), map_times(G, load_change(tree, i, TREE_UNIT, k))
    own = parameter(model.parameters, i, param.ARMATURE, k) * a + tree[i, TREE_DAMPING, k]
    own = own + inverse * (tree[i, TREE_STIFFNESS, k] + inverse * tree[i, TREE_INTEGRAL, k])
    D_inverse = constant_like(a, 1.0) / (power(U, S) + own)
    passed = add_forces(U, scale_force(inverse, load_force(tree, i, TREE_TURNED, k)))
    store_map(tree, i, TREE_MAP, k, G)
    store_change(tree, i, TREE_ROW, k, row)
    store_spatial(tree, i, TREE_PASSED, k, passed)
    tree[i, TREE_DINV, k] = D_inverse
    p = model.parent[i]
    if p < model.parent.shape[0]:
        G = subtract_force_of_row(G, scale_force(D_inverse, passed), row)
        if model.posing[i] != POSING_CARRIED:  # a carried dof has the same joint origin as its parent
            G = map_at_root(G, load3(tree, i, TREE_LEVER, k))
        store_map(tree, p, TREE_MAP, k, add_maps(load_map(tree, p, TREE_MAP, k), G))


# --- solution ---------------------------------------------------------------------------------------------------------


@only_if(_may_follow_tree)
@routine
def solve_along_tree(block, linear, right, k):
    """Replace the right-hand side s of the velocities by the increments w.

    `right` (rows, lanes) has the increments of the integrals, p_0. `linear.tangent` (n, lanes) has t. Writes w to
    `right[nq : nq + n]`.
    """
    n, model, tree = block.qd.shape[0], block.model, linear.tree
    for i in range(n):
        for row in range(6):
            tree[i, TREE_FORCE + row, k] = constant_like(tree, 0.0)
    for i in range(n - 1, -1, -1):
        pass_given_force(i, block, linear, right, k)
    for i in range(n):
        w = linear.direction[i, k]
        change = given_change(i, block, linear, right, k)
        p = model.parent[i]
        if p < n:
            of_parent = load_change(tree, p, TREE_CHANGE, k)
            at_tip = motion_at_tip(of_parent.A, load3(tree, i, TREE_LEVER, k))
            of_parent = MotionChange(at_tip, of_parent.V)
            row = load_change(tree, i, TREE_ROW, k)
            w = w - tree[i, TREE_DINV, k] * product_of_changes(row, of_parent)
            change = add_changes(change, of_parent)
        unit = load_change(tree, i, TREE_UNIT, k)
        scaled = MotionChange(scale_motion(w, unit.A), scale3(w, unit.V))
        store_change(tree, i, TREE_CHANGE, k, add_changes(change, scaled))
        right[block.q.shape[0] + i, k] = w


@kernel
def given_change(i, block, linear, right, k):
    """Return the change of the motion by the given increments of dof i: P'' t - S s of A, and P' t of V.

    `right` is (rows, lanes), and `linear.tangent` (n, lanes). The result is a MotionChange in world axes, at the joint
    origin.
    """
    S, s = load_motion(linear.tree, i, TREE_AXIS, k), right[block.q.shape[0] + i, k]
    change = change_of_position(linear.dofs, i, linear.tangent[i, k], k)
    return MotionChange(add_motions(change.A, scale_motion(-s, S)), change.V)


@kernel
def pass_given_force(i, block, linear, right, k):
    """Compute the increment of dof i for a parent without changes, and pass the force to the parent.

    `right` is (rows, lanes). Writes `linear.direction` (n, lanes) and the force in `linear.tree` (n, TREE_ROWS, lanes).
    """
    model, tree, nq, n = block.model, linear.tree, block.q.shape[0], block.qd.shape[0]
    S, s, t = load_motion(tree, i, TREE_AXIS, k), right[nq + i, k], linear.tangent[i, k]
    given = map_times(load_map(tree, i, TREE_MAP, k), given_change(i, block, linear, right, k))
    f = add_forces(load_force(tree, i, TREE_FORCE, k), given)
    e = parameter(model.parameters, i, param.ARMATURE, k) * s - tree[i, TREE_STIFFNESS, k] * t
    d = i
    while d >= 0:
        row = integral_row(block, d)
        if row >= 0:
            e = e + linear.by_integral[i, row - nq - n, k] * right[row, k]
        d = next_drive(block, d)
    w = tree[i, TREE_DINV, k] * (e - power(f, S))
    linear.direction[i, k] = w
    p = model.parent[i]
    if p < n:
        f = add_forces(f, scale_force(t, load_force(tree, i, TREE_TURNED, k)))
        f = add_forces(f, scale_force(w, load_force(tree, i, TREE_PASSED, k)))
        f = force_at_root(f, load3(tree, i, TREE_LEVER, k))
        f = add_forces(load_force(tree, p, TREE_FORCE, k), f)
        store_spatial(tree, p, TREE_FORCE, k, f)
