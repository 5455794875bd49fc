"""Jacobian of the constraints, and their forces on bodies and joints, from the rows of `constraint_rows`."""

from ...compiling.jit import kernel
from ..spatial.storage import load9, load_force
from ..spatial.vectors import z_axis
from ..tree import frame_layout as frame, parameter_layout as param
from ..tree.joints import joint_force
from ..tree.kinematics import force_on_parent
from ..tree.layout import parameter
from . import constraint_layout as closure, equation_layout as equation


@kernel
def constraint_jacobian(model, constraints, J, order, work, k):
    """Compute J (m, n, lanes), d phi = J dq along the tangent space, from the rows; J must start as zeros.

    The rows are in the order of the interface if `order` is closure.OUTPUT, and in the order of the tables if it is
    closure.ROW. Joints that carry both bodies turn the residual, which is in world axes. Their columns are therefore
    zero only if the residual is zero. Reads R and LEVER.
    """
    table, paths, n = constraints.tables.table, constraints.tables.paths, model.parent.shape[0]
    for c in range(table.shape[1]):
        for r in range(table[closure.ROW_COUNT, c]):
            row, output = table[closure.ROW, c] + r, table[order, c] + r
            for side in range(2):
                f = load_force(
                    constraints.rows, row, equation.FORCE_A + side * (equation.FORCE_B - equation.FORCE_A), k
                )
                if table[closure.TYPE, c] in closure.TYPES_OF_JOINTS:  # the joint of one side may carry the other
                    i = table[closure.DOF_A + side, c]
                    if i == n:  # an added inertia has no other joint
                        continue
                    J[output, i, k] = J[output, i, k] + constraints.rows[row, equation.MOTOR_A + side, k]
                    continue
                for step in range(table[closure.PATH_A + side, c], table[closure.PATH_END_A + side, c]):
                    i = paths[0, step]
                    axis = z_axis(load9(work.dof, i, frame.R, k))
                    advance = parameter(model.parameters, i, param.ADVANCE, k)
                    J[output, i, k] = J[output, i, k] + joint_force(model.joint[i], axis, advance, f)
                    f = force_on_parent(i, f, model, work, k)


@kernel
def constraint_wrenches(model, constraints, wrenches, motors, k):
    """Add the forces of all constraints: `wrenches` (n, 6, lanes) on dofs of bodies, `motors` (n, lanes) on joints.

    `motors` includes the forces of added inertias. A wrench is a force, then a moment about the joint origin of its
    dof, in world axes, N and N m, as in `Loads`.
    """
    table, rows, n = constraints.tables.table, constraints.rows, model.parent.shape[0]
    for c in range(table.shape[1]):
        for r in range(table[closure.ROW_COUNT, c]):
            row = table[closure.ROW, c] + r
            multiplier = rows[row, equation.MULTIPLIER, k]
            for side in range(2):
                i = table[closure.DOF_A + side, c]
                if i < n:
                    f = load_force(rows, row, equation.FORCE_A + side * (equation.FORCE_B - equation.FORCE_A), k)
                    for axis in range(3):
                        wrenches[i, axis, k] = wrenches[i, axis, k] + multiplier * f.lin[axis]
                        wrenches[i, 3 + axis, k] = wrenches[i, 3 + axis, k] + multiplier * f.ang[axis]
                    motors[i, k] = motors[i, k] + multiplier * rows[row, equation.MOTOR_A + side, k]
