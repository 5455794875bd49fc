"""Conversion of the constraints of a Description to the tables and parameters of `core.loops.constraint_layout`."""

from __future__ import annotations

import numpy as np

from ..core.loops import constraint_layout as closure, equation_layout as equation
from ..core.loops.constraint_layout import ConstraintTables
from ..core.tree.layout import TOPOLOGY_PARENT
from .description import ConstraintPlace, Description
from .joint import axes_along
from .topology import dofs_of, topology_of

TYPE_CODES = {
    "position": closure.POSITION,
    "distance": closure.DISTANCE,
    "coupler": closure.COUPLER,
    "added inertia": closure.ADDED_INERTIA,
}
#: Quantities in the columns of `constraint_parameters`, in their order, each with the column after its last one.
QUANTITY_ENDS = {
    "point_a": closure.PARAM_POINT_B,
    "point_b": closure.PARAM_AXES_A,
    "axes_a": closure.PARAM_AXES_B,
    "axes_b": closure.PARAM_LENGTH,
    "length": closure.PARAM_RATIO,
    "ratio": closure.PARAM_OFFSET,
    "offset": closure.PARAM_COMPLIANCE,
    "compliance": closure.PARAM_ANGULAR_COMPLIANCE,
    "angular_compliance": closure.PARAM_RELAXATION_TIME,
    "relaxation_time": closure.PARAM_COLUMNS,
}
#: Fewer constraints than this have no better order.
MIN_TO_ORDER = 3


def row_counts_of(description: Description) -> np.ndarray:
    """Return the number of rows of each constraint of the mechanism, in the order of the description."""
    return np.array([place.rows.total for place in description.constraints if place.dof < 0], int)


def tables_of(description: Description) -> ConstraintTables:
    """Return the tables of the constraints of a description that has at least one."""
    dofs, parent = dofs_of(description), topology_of(description)[TOPOLOGY_PARENT]
    n = parent.size
    places = description.constraints
    ends = [[n if body < 0 else int(dofs.last[body]) for body in (place.body_a, place.body_b)] for place in places]
    for end, place in zip(ends, places, strict=True):
        if place.dof >= 0:
            end[1] = place.dof
    ways = [[_way_to_root(dof, parent) for dof in pair] for pair in ends]
    # in the order of the inward sweep, so that the dofs of one path are in the order of the slots
    supports = [sorted(set(a) | set(b), reverse=True) for a, b in ways]
    order: list[int] = []  # a rank decision about rigid rows must not depend on compliant rows
    for is_compliant in (False, True):
        chosen = [c for c, place in enumerate(places) if place.dof < 0 and place.is_compliant == is_compliant]
        order += [chosen[i] for i in _order([supports[c] for c in chosen])]
    order += range(len(order), len(places))  # the added inertias
    outputs = np.concatenate([[0], np.cumsum([place.rows.total for place in places])])
    table = np.zeros((closure.ROWS, len(places)), np.int64)
    support: list[int] = []
    paths: list[tuple[int, int]] = []
    row = response = 0
    for column, c in enumerate(order):
        place, own_support, count = places[c], supports[c], int(outputs[c + 1] - outputs[c])
        table[:, column] = _codes_of(place)
        table[closure.DOF_A, column], table[closure.DOF_B, column] = ends[c]
        table[closure.ROW, column], table[closure.ROW_COUNT, column] = row, count
        table[closure.OUTPUT, column], table[closure.PARAMETERS, column] = outputs[c], n + 1 + c
        table[closure.SUPPORT, column], table[closure.SUPPORT_COUNT, column] = len(support), len(own_support)
        table[closure.RESPONSE, column] = response
        common = set(ways[c][0]) & set(ways[c][1])
        for side in range(2):
            way = ways[c][side]
            table[closure.PATH_A + side, column] = len(paths)
            table[closure.OWN_END_A + side, column] = len(paths) + sum(dof not in common for dof in way)
            paths += [(dof, own_support.index(dof)) for dof in way]
            table[closure.PATH_END_A + side, column] = len(paths)
        support += own_support
        row, response = row + count, response + count * len(own_support)
    pairs, shared = _shared_dofs([supports[c] for c in order])
    envelope, matrix_size, gram_size = _envelope(table, pairs, row)
    responses_and_matrices = response + matrix_size + gram_size
    memory = row * equation.ROWS + responses_and_matrices + 6 * closure.MAX_ROW_COUNT + 4 * n + closure.FLAG_ROWS
    memory += closure.remaining_size(row)
    is_constraint = table[closure.TYPE] != closure.ADDED_INERTIA
    own_rows = int(table[closure.ROW_COUNT, is_constraint].sum())
    rigid_rows = own_rows - int(table[closure.ROW_COUNT, table[closure.COMPLIANT] == 1].sum())
    return ConstraintTables(
        table=table,
        support=np.array(support, np.int64),
        paths=np.array(paths, np.int64).reshape(-1, 2).T.copy(),
        pairs=np.array(pairs, np.int64).reshape(-1, 4).T.copy(),
        shared=np.array(shared, np.int64).reshape(-1, 3).T.copy(),
        envelope=envelope,
        sizes=np.array([response, matrix_size, gram_size, memory, own_rows, rigid_rows], np.int64),
    )


def _codes_of(place: ConstraintPlace) -> np.ndarray:
    """Return a column of the table (closure.ROWS,), with the type of the rows of a constraint."""
    codes = np.zeros(closure.ROWS, np.int64)
    codes[closure.TYPE] = TYPE_CODES[place.rows.type]
    codes[closure.POINT_ROWS] = place.rows.of_points
    codes[closure.COMPLIANT] = place.is_compliant
    for r, products in enumerate(place.rows.directions):
        at, axes = closure.AXES + closure.AXES_OF_ROW * r, np.ravel(products)
        codes[at : at + closure.AXES_OF_ROW] = closure.NO_AXIS
        codes[at : at + axes.size] = axes
    codes[closure.ALIGNED] = min(place.rows.aligned, default=closure.NO_AXES)
    return codes


def _way_to_root(dof: int, parent: np.ndarray) -> list[int]:
    """Return a dof and its ancestors; none for the world."""
    found = []
    while dof < parent.size:
        found.append(dof)
        dof = int(parent[dof])
    return found


def _order(supports: list[list[int]]) -> list[int]:
    """Return an order of the constraints in which constraints with common dofs are close together (Cuthill-McKee)."""
    count = len(supports)
    if count < MIN_TO_ORDER:
        return list(range(count))
    from scipy.sparse import csr_array  # slow to import, and few models need it
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    sets = [set(support) for support in supports]
    overlaps = np.array([[bool(a & b) for a in sets] for b in sets])
    return [int(c) for c in reverse_cuthill_mckee(csr_array(overlaps), symmetric_mode=True)]


def _shared_dofs(supports: list[list[int]]) -> tuple[list[tuple[int, int, int, int]], list[tuple[int, int, int]]]:
    """Return the pairs of constraints with common dofs, and their slots in both supports."""
    slots = [{dof: slot for slot, dof in enumerate(support)} for support in supports]
    pairs: list[tuple[int, int, int, int]] = []
    shared: list[tuple[int, int, int]] = []
    for c, of_c in enumerate(slots):
        for d, of_d in enumerate(slots[: c + 1]):
            first = len(shared)
            shared += [(slot, of_d[dof], dof) for dof, slot in of_c.items() if dof in of_d]
            if len(shared) > first:
                pairs.append((c, d, first, len(shared)))
    return pairs, shared


def _envelope(table: np.ndarray, pairs: list[tuple[int, int, int, int]], m: int) -> tuple[np.ndarray, int, int]:
    """Return the envelope of both matrices (4, m), and their numbers of entries."""
    first = np.arange(m)
    rows, counts = table[closure.ROW], table[closure.ROW_COUNT]
    for c, d, *_ in pairs:
        own = slice(rows[c], rows[c] + counts[c])
        first[own] = np.minimum(first[own], rows[d])
    # columns i and j of the factor overlap if a row from i on starts at or before j
    reach = np.array([first[row:][first[row:] <= row].min() for row in range(m)])
    envelope, sizes = np.zeros((4, m), np.int64), []
    for at, starts in ((closure.ENVELOPE_FIRST, first), (closure.GRAM_FIRST, reach)):
        lengths = np.arange(m) - starts + 1
        envelope[at] = starts
        envelope[at + 1] = np.concatenate([[0], np.cumsum(lengths)[:-1]]) - starts
        sizes.append(int(lengths.sum()))
    return envelope, sizes[0], sizes[1]


def constraint_quantity(column: int) -> str:
    """Name the quantity in a column of `constraint_parameters`."""
    return next(name for name, end in QUANTITY_ENDS.items() if column < end)


def compliances_of(description: Description) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return compliances, angular compliances and relaxation times of the constraints (..., constraints)."""
    d = description
    return d.constraint_compliance, d.constraint_angular_compliance, d.constraint_relaxation_time


def constraint_parameters(description: Description) -> np.ndarray:
    """Return the parameters of the constraints (..., constraints, closure.PARAM_COLUMNS)."""
    d, dofs = description, dofs_of(description)
    axis = np.where(dofs.in_quaternion_joint[:, None], [0.0, 0.0, 1.0], d.axis)
    back = np.swapaxes(axes_along(axis), -1, -2)
    world = np.broadcast_to(np.eye(3), (*back.shape[:-3], 1, 3, 3))
    of_bodies = np.concatenate([back[..., dofs.last, :, :], world], -3)
    columns = []
    for point, axes, bodies in (
        (d.constraint_point_a, d.constraint_axes_a, [place.body_a for place in d.constraints]),
        (d.constraint_point_b, d.constraint_axes_b, [place.body_b for place in d.constraints]),
    ):
        turn = of_bodies[..., bodies, :, :]
        turned = turn @ axes
        columns += [(turn @ point[..., None])[..., 0], turned.reshape(*turned.shape[:-2], 9)]
    point_a, axes_a, point_b, axes_b = columns
    numbers = d.constraint_length, d.constraint_ratio, d.constraint_offset, *compliances_of(d)
    parts = [point_a, point_b, axes_a, axes_b, *(x[..., None] for x in numbers)]
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in parts))
    return np.concatenate([np.broadcast_to(x, (*batch, x.shape[-1])) for x in parts], -1)
