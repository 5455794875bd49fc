"""The proof of a forward dynamics: do the forces it found balance on every body?

The force through joint i as the articulated-body algorithm has it, f_i = IA_i a_i + pA_i, against Newton and Euler for
body i alone: f_i - sum of the children's f - (I_i a_i + v_i x* I_i v_i - wrench_i), which is zero but for rounding.
"""

from .aba import eliminate_joint, forward_dynamics
from .jit import kernel
from .layout import LEVER, A, F
from .rnea import force_on_body
from .spatial import add_forces, force_at_root, momentum, subtract_forces
from .storage import load3, load_force, load_motion, store_spatial


@kernel
def force_balance(model, q, qd, loads, qdd, residual, work, k):
    """Solve for qdd, and write what is left of the balance of each body to residual (n, 6, lanes): moment, force."""
    n = model.parent.shape[0]
    forward_dynamics(model, q, qd, loads, qdd, work, k)
    for i in range(n - 1, -1, -1):
        reveal_joint_force(i, model, qd, loads, work, k)
    for i in range(n):
        balance_body(i, model, loads, residual, work, k)
    for i in range(n):
        subtract_from_parent(i, model, residual, work, k)


@kernel
def reveal_joint_force(i, model, qd, loads, work, k):
    """F = IA a + pA, by eliminating joint i once more now that a is known."""
    IA_body, pA = eliminate_joint(i, model, qd, loads, work, k)
    store_spatial(work.body, i, F, k, add_forces(momentum(IA_body, load_motion(work.body, i, A, k)), pA))


@kernel
def balance_body(i, model, loads, residual, work, k):
    """The joint's force less what the body's own motion takes."""
    needed = force_on_body(i, model, load_motion(work.body, i, A, k), loads, work, k)
    store_spatial(residual, i, 0, k, subtract_forces(load_force(work.body, i, F, k), needed))


@kernel
def subtract_from_parent(i, model, residual, work, k):
    """Take the force that body i hands on off its parent's balance."""
    p = model.parent[i]
    if p < model.parent.shape[0]:
        handed = force_at_root(load_force(work.body, i, F, k), load3(work.body, i, LEVER, k))
        store_spatial(residual, p, 0, k, subtract_forces(load_force(residual, p, 0, k), handed))
