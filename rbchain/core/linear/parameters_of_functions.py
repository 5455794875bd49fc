"""Derivatives of the joint forces of user functions with respect to their parameters, for sensitivities."""

from ...compiling.jit import kernel
from ..control.user_calls import FUNCTION_COUNT, call_derivatives_by_parameters
from ..lanes.lanes import constant_like
from .parameter_layout import BY_USER_PARAMETER, COLUMN_ENTRY, COLUMN_FUNCTION, COLUMN_KIND


@kernel
def is_of_function(columns, column, f):
    """Whether a column (COLUMN_ROWS, count) belongs to a parameter of UserForces number f."""
    return columns[COLUMN_KIND, column] == BY_USER_PARAMETER and columns[COLUMN_FUNCTION, column] == f


@kernel
def store_derivatives_of_functions(block, columns, y, rate, first, size):
    """Call each user function with columns once for each lane, and store the derivatives in the columns of `rate`.

    Column c of `columns` (COLUMN_ROWS, count) has `size` rows of y and `rate` (rows, lanes) from first + c size. The
    derivatives of the joint forces, N m or N per unit of the parameter, replace the rates of the velocities. They are
    zero for other parameters.
    """
    actions, nq, n, count = block.loads.actions, block.q.shape[0], block.qd.shape[0], columns.shape[1]
    for f in range(actions.shared.functions.shape[1]):
        has_columns = False
        for column in range(count):
            has_columns = has_columns or is_of_function(columns, column, f)
        if has_columns:
            for lane in range(actions.time.shape[1]):
                at = call_derivatives_by_parameters(actions, f, nq, n, y, lane)
                for column in range(count):
                    if at >= 0 and is_of_function(columns, column, f):
                        store_column_of_function(
                            actions, f, at, columns[COLUMN_ENTRY, column], rate, first + column * size + n, n, lane
                        )


@kernel
def store_column_of_function(actions, f, at, entry, rate, first, n, lane):
    """Store the n derivatives with respect to one parameter in the rows of `rate` (rows, lanes) from `first`.

    They are in `call_arguments`, with the derivatives of the first force from index `at`.
    """
    count = actions.shared.functions[FUNCTION_COUNT, f]
    for i in range(n):
        rate[first + i, lane] = constant_like(rate, actions.call_arguments[at + i * count + entry])
