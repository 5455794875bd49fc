"""Arrays that describe the constraints of a mechanism, and their working memory: tables, rows and memory of a block.

A constraint acts between body a and body b, at the last dofs of these bodies; n stands for the world. It has 1 to 6
rows, and each row is one equation phi(q) = 0. Rows are in the order of the factorization, which differs from the order
of the interface: rows of rigid constraints, then rows of compliant constraints. The support of a constraint is the set
of dofs whose motion its forces change: the dofs on the paths of both bodies to the base.

The rows of `Constraints.rows` are in `equation_layout`. PARAM_ is the prefix of the parameters of a constraint, which
have their own row of the parameters, after the row of gravity.

An added inertia is not a constraint of the mechanism. Its row belongs to one dof, the dof of body b, and comes after
the rows of all constraints (`loops.constraint_solver`).

The kernels of this package use these arguments, in SI units:

* `q` (nq, lanes), `qd` and `qdd` (n, lanes) are positions, velocities and accelerations of the dofs: rad or m, rad/s or
  m/s, and rad/s^2 or m/s^2.
* `constraints` is a Constraints, and `rows` its field `rows`. c is the number of a constraint, `row` the number of a
  row.
* `side` is 0 for body a and 1 for body b. `lane` is the number of one lane.
* Vectors (3), rotations (9), Motion and Force are tuples in world axes. A Force on a body refers to its joint origin.
"""

from typing import Annotated, NamedTuple

import numpy as np

from ...compiling.jit import kernel, plain_or_compiled
from ..lanes.lane_memory import window
from ..lanes.lane_records import lane_record
from . import equation_layout as equation

# --- parameters of a constraint ---
PARAM_POINT_A = 0  # 3: in the axes of frame a, m
PARAM_POINT_B = 3  # 3: in the axes of frame b, m
PARAM_AXES_A = 6  # 9: rotation from the axes of the constraint on body a to frame a
PARAM_AXES_B = 15  # 9: the same for body b
PARAM_LENGTH = 24  # of a distance constraint, m
PARAM_RATIO = 25  # of a coupler
PARAM_OFFSET = 26  # of a coupler, rad or m
PARAM_ADDED_INERTIA = PARAM_LENGTH  # of an added inertia, kg or kg m^2
PARAM_COMPLIANCE = 27  # of the points or the joints of a compliant constraint, m/N or rad/(N m)
PARAM_ANGULAR_COMPLIANCE = 28  # of its directions, rad/(N m)
PARAM_RELAXATION_TIME = 29  # s
PARAM_COLUMNS = 30

# --- types of rows ---
# The first rows of a constraint between bodies belong to its points: three rows of type POSITION, or one of type
# DISTANCE. The other rows belong to its directions. A constraint between joints has one row of the other types.
POSITION, DISTANCE, COUPLER, ADDED_INERTIA = 0, 1, 2, 3
TYPES_OF_JOINTS = (COUPLER, ADDED_INERTIA)
MAX_ROW_COUNT = 6
MAX_DIRECTIONS = 3

# --- rows of `ConstraintTables.table`, one column for each constraint ---
TYPE = 0  # type of its first rows
DOF_A, DOF_B = 1, 2
ROW = 3  # its first row
ROW_COUNT = 4
OUTPUT = 5  # its first row in the order of the interface
PARAMETERS = 6  # its row of the parameters
SUPPORT = 7  # its first entry of `support`
SUPPORT_COUNT = 8
RESPONSE = 9  # its first entry of `Constraints.responses`
PATH_A, PATH_B = 10, 11  # the first entry of `paths` for each body
PATH_END_A, PATH_END_B = 12, 13  # the end of the path to the root
OWN_END_A, OWN_END_B = 14, 15  # the end of the path to the common ancestor of both bodies
POINT_ROWS = 16  # number of rows of points
# For each row of a direction, the numbers of the axes x, y, z and w: x and z of body a, y and w of body b. The row is
# x . y if z and w are NO_AXIS, else (x . y - z . w) / 2.
AXES, AXES_OF_ROW = 17, 4
NO_AXIS = -1
ALIGNED = AXES + AXES_OF_ROW * MAX_DIRECTIONS  # axes from this one to 2 are equal for both bodies; none if NO_AXES
NO_AXES = 3
COMPLIANT = ALIGNED + 1  # 1 for a compliant constraint, else 0
ROWS = COMPLIANT + 1


class ConstraintTables(NamedTuple):
    """The constraints of a mechanism as integers, which all samples share; m is the number of rows.

    * `table` (ROWS, constraints) is described above.
    * `support` (s,) are the dofs of all supports. Entry i of a support is its slot i.
    * `paths` (2, p) are the dofs from each body to its root, and their slots.
    * `pairs` (4, pairs) are constraints c and d with overlapping supports, d not after c, and their range in `shared`.
    * `shared` (3, t) are slots in c, slots in d, and the dofs.
    * `envelope` (4, m) describes two lower triangular matrices, row by row: first column and offset of J H^-1 J^T and
      of the matrix for minimum-norm solutions. Entry (row, column) of a matrix is number offset + column.
    * `sizes` (SIZE_COUNT,) is described below.
    """

    table: np.ndarray
    support: np.ndarray
    paths: np.ndarray
    pairs: np.ndarray
    shared: np.ndarray
    envelope: np.ndarray
    sizes: np.ndarray


ENVELOPE_FIRST, ENVELOPE_OFFSET = 0, 1
GRAM_FIRST, GRAM_OFFSET = 2, 3

# --- entries of `ConstraintTables.sizes`: numbers of rows of working memory ---
RESPONSE_SIZE, MATRIX_SIZE, GRAM_SIZE = 0, 1, 2
MEMORY_SIZE = 3  # of all constraints together
CONSTRAINT_ROWS = 4  # rows of constraints, without added inertias
RIGID_ROWS = 5  # rows of rigid constraints
SIZE_COUNT = 6


class Constraints(NamedTuple):
    """The constraints of the samples in one block.

    * `rows` (m, equation.ROWS, lanes) is described in `equation_layout`.
    * `responses` (w, lanes) are the changes of u (`aba`) of each dof in the support due to a unit multiplier of a row.
    * `matrix` (entries, lanes) is J H^-1 J^T, later its factors. `gram` (entries, lanes) is the matrix for minimum-norm
      solutions.
    * `remaining` (m (m + 1) / 2, lanes) is the lower triangle that is left during the selection of independent rows.
    * `passing` (MAX_ROW_COUNT, 6, lanes) are forces on the way to the root.
    * `joint_sums` (n, lanes) is the sum of multipliers times responses.
    * `changes` (n, lanes) are changes of velocities, rad/s or m/s, or, along the tangent space, of positions, rad or m.
      `moves` (2 n, lanes) is memory for changes of q.
    * `flags` (FLAG_ROWS, lanes) is described below.
    """

    tables: ConstraintTables
    rows: np.ndarray
    responses: np.ndarray
    matrix: np.ndarray
    gram: np.ndarray
    passing: np.ndarray
    joint_sums: np.ndarray
    changes: np.ndarray
    moves: np.ndarray
    flags: np.ndarray
    remaining: np.ndarray


# --- rows of `Constraints.flags` ---
FLAG_DECIDES = 0  # 1 if the next factorization decides which rows are independent, 0 if it keeps the last decision
FLAG_OPEN = 1  # 0, or why the last projection failed: 1 if it did not converge, 2 if the constrained state was too far
FLAG_ERROR = 2  # largest residual or rate relative to the scale of its round-off
FLAG_CONDITION = 3  # square root of the smallest ratio of a pivot to its scale: 1 far from singular configurations
FLAG_START_CONDITION = 4  # FLAG_CONDITION at the start of the step
FLAG_AVOIDED = 5  # number of steps that were repeated to avoid a singular configuration
FLAG_UNCERTAIN = 6  # 1 if the independent rows must be selected again
FLAG_LOST_RANK = 7  # 1 if fewer rows are independent at the end of the step than at its start
FLAG_ROWS = 8


@plain_or_compiled
def remaining_size(m):
    """Return the number of entries of the lower triangle of a matrix with m rows."""
    return m * (m + 1) // 2


@kernel
def constraints_in(memory, first, tables, n):
    """Create the Constraints of a block in the rows of `memory` (rows, lanes) that start at `first`."""
    m, width = tables.envelope.shape[1], memory.shape[1]
    flat = memory.reshape(memory.size)
    responses = first + m * equation.ROWS
    matrix = responses + tables.sizes[RESPONSE_SIZE]
    gram = matrix + tables.sizes[MATRIX_SIZE]
    passing = gram + tables.sizes[GRAM_SIZE]
    joint_sums = passing + 6 * MAX_ROW_COUNT
    flags = joint_sums + 4 * n
    return Constraints(
        tables=tables,
        rows=window(flat, first * width, (m, equation.ROWS, width)),
        responses=window(flat, responses * width, (matrix - responses, width)),
        matrix=window(flat, matrix * width, (gram - matrix, width)),
        gram=window(flat, gram * width, (passing - gram, width)),
        passing=window(flat, passing * width, (MAX_ROW_COUNT, 6, width)),
        joint_sums=window(flat, joint_sums * width, (n, width)),
        changes=window(flat, (joint_sums + n) * width, (n, width)),
        moves=window(flat, (joint_sums + 2 * n) * width, (2 * n, width)),
        flags=window(flat, flags * width, (FLAG_ROWS, width)),
        remaining=window(flat, (flags + FLAG_ROWS) * width, (remaining_size(m), width)),
    )


# --- memory of derivatives ---
# Columns of `ConstraintDerivatives.vectors`: e'', e' and e.
VECTOR_SECOND, VECTOR_FIRST, VECTOR, VECTOR_ROWS = 0, 3, 6, 9
# Columns of `ConstraintDerivatives.force`: W, N, and the symmetric matrix sum of lambda (I - e e^T) / |d|.
FORCE_WRENCH, FORCE_TURN, FORCE_STRETCH, FORCE_ROWS = 0, 6, 15, 21


class ConstraintDerivatives(NamedTuple):
    """Working memory of the derivatives of a closed loop with m rows. All arrays end in lanes.

    * `multipliers` (m,) are the multipliers in the state, N or N m.
    * `by_q` and `by_qd` (m, n) are the derivatives of the accelerations of all rows, later Y K - dc/dq and
      Y D - dc/dqd (`loops.constrained_derivatives`). `by_integral` (m, integrals) is Y C. `rates` (m, n) are the
      derivatives of the rates J qd with respect to q.
    * `responses` (m, n) is J H^-1, and `reactions` (m, n) is (J H^-1 J^T)^-1 J (`loops.constrained_derivatives`).
    * `vectors` (MAX_ROW_COUNT, VECTOR_ROWS) and `force` (1, FORCE_ROWS) belong to one constraint.
    * `axes` (2 n, 6) are the motions S of all dofs on the paths to body a, then to body b, of one constraint. They are
      in world axes, at the point of the constraint on this body.
    """

    multipliers: Annotated[np.ndarray, "m"]
    by_q: Annotated[np.ndarray, "m", "n"]
    by_qd: Annotated[np.ndarray, "m", "n"]
    by_integral: Annotated[np.ndarray, "m", "integrals"]
    rates: Annotated[np.ndarray, "m", "n"]
    responses: Annotated[np.ndarray, "m", "n"]
    reactions: Annotated[np.ndarray, "m", "n"]
    vectors: Annotated[np.ndarray, MAX_ROW_COUNT, VECTOR_ROWS]
    force: Annotated[np.ndarray, 1, FORCE_ROWS]
    axes: Annotated[np.ndarray, "2 * n", 6]


constraint_derivatives_size, constraint_derivatives_in = lane_record(ConstraintDerivatives, "m", "n", "integrals")
