"""Arrays that describe dry friction, joint stops and contacts, and their working memory.

An element is the friction of a dof (one row), one stop of a dof (one row), or a contact. A sphere and a plane, or two
spheres with friction, have three rows: the normal and two tangents. Two spheres without friction have one row.

The velocity of a row is u = J v, and its impulse p acts on the dofs as J^T p:

    friction of a dof   u = v_i                        p is between two limits
    lower stop          u = v_i    gap = q_i - lower   p >= 0
    upper stop          u = -v_i   gap = upper - q_i   p >= 0
    contact             u = velocity of the point of the sphere next to the plane, along the normal and two tangents
                        p of the normal is >= 0, and p of the tangents is in a disc
    two spheres         u = velocity of the second centre relative to the first, along the line from the first to it
                        p >= 0; with friction also u of the points that touch, along two tangents

Each constant has the prefix of its array: ELEMENT_ of `SharedActions.contacts`, CONTACT_ of `Contacts.rows`.
"""

from typing import Annotated, NamedTuple

import numpy as np

from ...compiling.jit import kernel
from ..lanes.lane_records import lane_record

# --- rows of `SharedActions.contacts`, one column for each element ---
ELEMENT_KIND = 0
ELEMENT_DOF = 1  # dof of the joint, or of the body of the sphere or of the second sphere; n for the world
ELEMENT_NUMBERS = 2  # index of the first of its numbers in `BlockActions.numbers`
ELEMENT_ROW = 3  # its first row
ELEMENT_SIGN = 4  # 1 for a lower and -1 for an upper stop, so that u = sign v_i; else 1
ELEMENT_FORCE = 5  # number of its DryFriction, HardStops, SphereContact or SphereSphereContact among these forces
ELEMENT_OTHER = 6  # dof of the body of the first of two spheres; n for the world, and for other elements
ELEMENT_ROWS = 7

FRICTION, STOP, SPHERE, PAIR, ROUGH_PAIR = 0, 1, 2, 3, 4  # PAIR: two spheres without friction; ROUGH_PAIR: with it
ROWS_OF_KIND = (1, 1, 3, 1, 3)

# --- numbers of an element ---
FRICTION_KINETIC_FORWARD, FRICTION_STATIC_FORWARD = 0, 1  # friction of a motion in the positive direction, N m or N
FRICTION_KINETIC_BACKWARD, FRICTION_STATIC_BACKWARD = 2, 3
STOP_POSITION, STOP_RESTITUTION = 0, 1
SPHERE_POINT = 0  # 3: in the axes of the body, m
SPHERE_RADIUS = 3  # m
SPHERE_PLANE_POINT = 4  # 3: a point of the plane, world axes, m
SPHERE_NORMAL = 7  # 3: unit vectors in world axes; the normal points away from the plane
SPHERE_TANGENT_A, SPHERE_TANGENT_B = 10, 13  # 3 each
SPHERE_FRICTION, SPHERE_RESTITUTION = 16, 17
PAIR_POINT, PAIR_OTHER_POINT = 0, 3  # 3 each: centres of the second and the first sphere in the axes of their bodies, m
PAIR_RADII = 6  # sum of both radii, m
PAIR_RESTITUTION = 7
ROUGH_AXES = 7  # 9: orthonormal vectors, from which the tangents of two spheres follow
# a ROUGH_PAIR also uses SPHERE_FRICTION and SPHERE_RESTITUTION
ROUGH_RADIUS, ROUGH_OTHER_RADIUS = 18, 19  # of the second and the first sphere, m

# --- rows of `Contacts.rows` ---
CONTACT_GAP = 0  # m or rad; only of stops and of the normal rows of contacts
CONTACT_VELOCITY = 1  # u = J v, m/s or rad/s
CONTACT_BOUND = 2  # least u of a row with a gap
CONTACT_IMPULSE = 3  # p, N s or N m s
CONTACT_LOWER, CONTACT_UPPER = 4, 5  # limits of p; for the tangents of a contact, a radius that is added to mu p_n
CONTACT_FRICTION = 6  # mu, at the normal row of a contact
CONTACT_DIAGONAL = 7  # J H^-1 J^T of the row
CONTACT_INVERSE = 8  # its reciprocal; 0 if no impulse changes u; both tangents have the same number
CONTACT_START_VELOCITY = 9  # u at the start of a step
CONTACT_IMPACT = 10  # 1 if an impact is possible in the step, else 0
CONTACT_STICKS = 11  # 1 if the friction of the dof, or of the contact, sticks, else 0
CONTACT_RIGHT, CONTACT_PIVOT = 12, 13  # right-hand side and reciprocal pivot of a Newton step of the solver
CONTACT_NEWTON_IMPULSE, CONTACT_NEWTON_VELOCITY = 14, 15  # p and u before the Newton steps of a round
CONTACT_FREE_VELOCITY = 16  # u at the end of a step without impulses
CONTACT_IMPACT_TIME = 17  # time of an impact, as a fraction of the step
CONTACT_IS_CLIPPED = 18  # 1 if the rebound ends within the step, else 0
CONTACT_STORED = 19  # p, while the solver computes corrections of positions
CONTACT_STUCK = 20  # 1 if the row stuck at the end of the last step, 2 if an interval of sticking is recorded, else 0
CONTACT_RESIDUAL = 21  # residual of the solver, in the first row
CONTACT_COUPLES = 22  # 0 if a row of a Newton step has no entries to the right of its diagonal
CONTACT_BIAS = 23  # d u / dt without accelerations of the joints
CONTACT_NORMAL = 24  # 3: direction of a row of two spheres in world axes; the normal points to the second sphere
CONTACT_PLACE = 27  # in lane 0: number of the row at this place of the matrix of a Newton step
CONTACT_RESPONDS = 28  # in the first row and lane 0: 1 if the step has computed the responses
CONTACT_CHANGE = 29  # change of u by a Newton step
CONTACT_STEP_IMPULSE, CONTACT_STEP_VELOCITY = 30, 31  # p and u before a Newton step
CONTACT_GIVEN_VELOCITY = 32  # u without impulses, from which the solver starts
CONTACT_GIVEN_DIAGONAL, CONTACT_GIVEN_INVERSE = 33, 34  # DIAGONAL and INVERSE before the solver adds to W
CONTACT_BEST_IMPULSE = 35  # p before the solver adds to the diagonal of W
CONTACT_REACHED_IMPULSE = 36  # p with the last added number for which the solver succeeded
CONTACT_SWEEP_INVERSE = 37  # CONTACT_INVERSE before a Newton step multiplies it
CONTACT_RESTITUTION_IMPULSE = 38  # p with restitution, while the law of impacts limits the energy
CONTACT_SHIFT = 39  # velocity at the end of a step minus the velocity at which the impulses of the row act
CONTACT_ROWS = 40


class Contacts(NamedTuple):
    """The dry friction, joint stops and contacts of the samples in one block; m is the number of rows.

    * `table` (ELEMENT_ROWS, elements) and `rows` (m, CONTACT_ROWS, lanes) are described above.
    * `jacobian` (m, n, lanes) is J.
    * `responses` (m, n, lanes) are the velocities H^-1 J^T that unit impulses of the rows cause.
    * `matrix` (m, m, lanes) is J H^-1 J^T. `linear` (m, m, lanes) is the matrix of a Newton step. Its first rows and
      columns belong to the elements that the step changes.
    * `changes` (2, n, lanes) is memory for changes of velocities and of positions.
    """

    table: np.ndarray
    rows: Annotated[np.ndarray, "m", CONTACT_ROWS]
    jacobian: Annotated[np.ndarray, "m", "n"]
    responses: Annotated[np.ndarray, "m", "n"]
    matrix: Annotated[np.ndarray, "m", "m"]
    linear: Annotated[np.ndarray, "m", "m"]
    changes: Annotated[np.ndarray, 2, "n"]


_size_of_contacts, _carve_contacts = lane_record(Contacts, "m", "n")


@kernel
def rows_of_element(e, table):
    """Return the number of rows of element e."""
    return 3 if has_tangents(table[ELEMENT_KIND, e]) else 1


@kernel
def has_tangents(kind):
    """Whether an element has three rows: the normal and two tangents."""
    return kind in (SPHERE, ROUGH_PAIR)


@kernel
def is_pair(kind):
    """Whether an element is the contact of two spheres."""
    return kind in (PAIR, ROUGH_PAIR)


@kernel
def restitution_column(kind):
    """Return the place of the coefficient of restitution among the numbers of a stop or a contact."""
    if has_tangents(kind):
        return SPHERE_RESTITUTION
    return PAIR_RESTITUTION if kind == PAIR else STOP_RESTITUTION


@kernel
def row_count(table):
    """Return the number of rows of all elements."""
    count = 0
    for e in range(table.shape[1]):
        count += rows_of_element(e, table)
    return count


def contacts_size(table, n):
    """Return how many numbers per lane `contacts_in` needs. Called in Python."""
    return _size_of_contacts(sum(ROWS_OF_KIND[kind] for kind in table[ELEMENT_KIND]), n)


@kernel
def contacts_in(memory, first, width, table, n):
    """Create the Contacts of a block in the flat array `memory`, from index `first` on."""
    return _carve_contacts(memory, first, width, table, row_count(table), n)
