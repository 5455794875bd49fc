"""Checks of a single state in compiled code, for calls that pass the caller's arrays without checks in Python."""

from ..compiling.direct_calls import UNCHECKED
from ..compiling.jit import kernel, only_if
from ..core.tree.layout import (
    POSING_FREE,
    POSING_OWN,
    POSING_SPHERICAL,
    TOPOLOGY_COORDINATE,
    TOPOLOGY_POSING,
)

#: Largest difference between the norm of a quaternion in float64 and 1.
QUATERNION_TOLERANCE = 1e-6


@kernel
def position_count(topology):
    """Return the number of positions of the mechanism with the `topology` (TOPOLOGY_ROWS, n)."""
    count = 0
    for i in range(topology.shape[1]):
        posing, at = topology[TOPOLOGY_POSING, i], topology[TOPOLOGY_COORDINATE, i]
        if posing == POSING_OWN:
            count = max(count, at + 1)
        elif posing == POSING_FREE:
            count = max(count, at + 7)
        elif posing == POSING_SPHERICAL:
            count = max(count, at + 4)
    return count


@kernel
def has_unit_quaternions(topology, q):
    """Return whether all quaternions in positions `q` (nq,) are of norm 1; False if one is not finite."""
    for i in range(topology.shape[1]):
        posing, at = topology[TOPOLOGY_POSING, i], topology[TOPOLOGY_COORDINATE, i]
        if posing == POSING_FREE:
            at += 3
        if posing in (POSING_FREE, POSING_SPHERICAL):
            square = q[at] * q[at] + q[at + 1] * q[at + 1] + q[at + 2] * q[at + 2] + q[at + 3] * q[at + 3]
            # the square of 1 + x differs from 1 by 2 x
            if not abs(square - 1.0) <= 2.0 * QUATERNION_TOLERANCE:
                return False
    return True


@kernel
def is_valid_state(topology, states):
    """Return whether single states, positions (nq,) before others (nv,), have these sizes and unit quaternions.

    If not, Python checks the state again, and converts it or raises an error.
    """
    for number, x in enumerate(states):
        if x.size != (position_count(topology) if number == 0 else topology.shape[1]):
            return False
    return has_unit_quaternions(topology, states[0])


@only_if(lambda topology, first, states: states[0].ndim == 1, True)
@kernel
def can_compute(topology, first, states):
    """Whether a driver can compute these states.

    It checks a single state if `first` is UNCHECKED. Batches are checked in Python, which takes little time for
    each sample.
    """
    return first != UNCHECKED or is_valid_state(topology, states)
