"""Elastic power: the rate of the elastic energy of joints, and of springs and bushings between bodies.

With the position q and the velocity v of a dof, and the penetration x of an elastic stop:

    spring of a joint   E = k y^2 / 2 + k3 y^4 / 4,  dE/dt = (k y + k3 y^3) v,  y = q - rest
    stop of a joint     E = k x^2 / 2,               dE/dt = k x dx/dt

`springs` and `bushings` describe the energies between bodies. Damping is not elastic.
"""

from ...compiling.jit import is_given, kernel, only_if
from ..lanes.lanes import constant_like, select, zeros_like
from ..tree import parameter_layout as param
from ..tree.kinematics import move_dof, place_about_first_joint
from ..tree.layout import PASSIVE_SPRING, PASSIVE_STOPS, parameter
from .bushings import bushing_power
from .passive import stop_penetration
from .springs import SPRING_TENSION_ONLY, spring_power, stretch_of_spring


@kernel
def elastic_power_of_joint(i, model, q, qd, k):
    """Compute the rate of the elastic energy of dof i, W, from q (nq, lanes) and qd (n, lanes)."""
    kinds, parameters, v = model.passive[i], model.parameters, qd[i, k]
    total = zeros_like(v)
    if kinds & PASSIVE_SPRING:
        x = q[model.coordinate[i], k] - parameter(parameters, i, param.REST, k)
        cubic = parameter(parameters, i, param.CUBIC_STIFFNESS, k)
        total = total + x * (parameter(parameters, i, param.STIFFNESS, k) + cubic * (x * x)) * v
    if kinds & PASSIVE_STOPS:
        x, sign = stop_penetration(i, parameters, q[model.coordinate[i], k], k)
        total = total - sign * parameter(parameters, i, param.LIMIT_STIFFNESS, k) * x * v
    return total


@only_if(
    lambda block, k: is_given(block, "loads", "actions", "between_bodies"),
    otherwise=lambda block, k: zeros_like(block.work.dof[0, 0, k]),
)
@kernel
def elastic_power_between_bodies(block, k):
    """Compute the rate of the elastic energy between bodies, W (reads R, LEVER and V; writes POSITION)."""
    actions, model, work = block.loads.actions, block.model, block.work
    springs, bushings, numbers = actions.shared.springs, actions.shared.bushings, actions.numbers
    for i in range(model.parent.shape[0]):
        place_about_first_joint(i, model, work, k)
    total = zeros_like(numbers[0, k])
    for s in range(springs.shape[1]):
        total = total + spring_power(s, model, springs, numbers, work, k)
    for s in range(bushings.shape[1]):
        total = total + bushing_power(s, model, bushings, numbers, work, k)
    return total


@kernel
def elastic_power(block, q, qd, k):
    """Compute the rate of the elastic energy of a block, W (reads R, LEVER and V; writes POSITION).

    q is (nq, lanes), and qd (n, lanes).
    """
    total = elastic_power_between_bodies(block, k)
    for i in range(block.model.parent.shape[0]):
        total = total + elastic_power_of_joint(i, block.model, q, qd, k)
    return total


@only_if(lambda block: is_given(block, "loads", "actions", "between_bodies"), False)
@kernel
def has_cables(block):
    """Whether a spring between bodies can only pull."""
    springs, found = block.loads.actions.shared.springs, False
    for s in range(springs.shape[1]):
        found = found or springs[SPRING_TENSION_ONLY, s] == 1
    return found


@kernel
def has_kinks(block):
    """Whether the elastic energy has kinks: at elastic stops, and where springs that can only pull become taut."""
    found = has_cables(block)
    for i in range(block.model.parent.shape[0]):
        found = found or (block.model.passive[i] & PASSIVE_STOPS) != 0
    return found


@kernel
def engaged_elements(block, q, qd, k):
    """Return a number that changes where a joint enters or leaves an elastic stop, or a cable becomes taut or slack.

    It is the sum of the numbers of these stops and cables, counted from 1. With cables, it writes R, LEVER, V and
    POSITION. q is (nq, lanes), and qd (n, lanes).
    """
    model, n = block.model, block.model.parent.shape[0]
    total, zero = zeros_like(q[0, k]), constant_like(q, 0.0)
    for i in range(n):
        if model.passive[i] & PASSIVE_STOPS:
            depth, _ = stop_penetration(i, model.parameters, q[model.coordinate[i], k], k)
            total = total + select(depth > zero, constant_like(q, i + 1.0), zero)
    if has_cables(block):
        total = total + taut_cables(block, q, qd, k)
    return total


@only_if(
    lambda block, q, qd, k: is_given(block, "loads", "actions", "between_bodies"),
    otherwise=lambda block, q, qd, k: zeros_like(q[0, k]),
)
@kernel
def taut_cables(block, q, qd, k):
    """Return the sum of the numbers of taut cables, counted from n + 1 (writes R, LEVER, V and POSITION).

    q is (nq, lanes), and qd (n, lanes).
    """
    model, work, actions, n = block.model, block.work, block.loads.actions, block.model.parent.shape[0]
    springs, numbers, zero = actions.shared.springs, actions.numbers, zeros_like(q[0, k])
    total = zero
    for i in range(n):
        move_dof(i, model, q, qd, work, k)
        place_about_first_joint(i, model, work, k)
    for s in range(springs.shape[1]):
        if springs[SPRING_TENSION_ONLY, s] == 1:
            stretch = stretch_of_spring(s, model, springs, numbers, work, k)
            total = total + select(stretch > zero, constant_like(q, n + s + 1.0), zero)
    return total
