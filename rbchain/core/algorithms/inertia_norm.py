"""The norm of velocities in the metric of the mass matrix, from the factors of the last dynamics."""

from ...compiling.jit import routine
from ..lanes.lanes import constant_like, nan_unless_finite, select, zeros_like
from ..spatial.storage import load3, load9, load_force, load_motion, store_spatial
from ..spatial.vectors import motion_at_tip, power, z_axis
from ..tree import frame_layout as frame, parameter_layout as param
from ..tree.joints import add_joint_motion
from ..tree.layout import apply_gravity, parameter, remove_gravity


@routine
def inertia_norm_squared(model, v, work, k):
    """Compute v . H v of the open chain for v (n, lanes): twice the kinetic energy at these velocities, J.

    With the articulated-body factors, H = L^T D L, and L v follows from an outward sweep:

        (L v)_i = v_i + U_i . a_parent / D_i,   a_i = a_parent + S_i v_i

    Prescribed dofs have 1 / D = 0, and do not count. Reads R, LEVER, U and DINV; writes A. Source: Featherstone (2008),
    sections 6.5 and 7.3. The velocities v are in rad/s or m/s.
    """
    dof, total = work.dof, zeros_like(v[0, k])
    zero, one = constant_like(dof, 0.0), constant_like(dof, 1.0)
    remove_gravity(model, work, k)
    for i in range(model.parent.shape[0]):
        axis, advance = z_axis(load9(dof, i, frame.R, k)), parameter(model.parameters, i, param.ADVANCE, k)
        a = motion_at_tip(load_motion(dof, model.parent[i], frame.A, k), load3(dof, i, frame.LEVER, k))
        Dinv = dof[i, frame.DINV, k]
        part = v[i, k] + Dinv * power(load_force(dof, i, frame.U, k), a)
        moves = Dinv > zero
        total = total + select(moves, part * part / select(moves, Dinv, one), nan_unless_finite(part))
        store_spatial(dof, i, frame.A, k, add_joint_motion(model.joint[i], a, axis, advance, v[i, k]))
    apply_gravity(model, work, k)
    return total
