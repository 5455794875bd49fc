"""Integration methods with their tolerances, as arguments of the compiled drivers."""

from typing import NamedTuple

from ..sample.records import Tolerances
from .tableaus import Tableau


class FixedStepSettings(NamedTuple):
    """The method, the maximum length of a step, s, and a time at which a step starts, s."""

    tableau: Tableau
    step: float
    origin: float


class ContactStepSettings(NamedTuple):
    """The maximum length of a step, s, a time at which a step starts, s, and the tolerances of contact.

    `tableau` is Euler's, for the interpolation of a step. `tolerance` is the largest residual of the velocities, m/s
    and rad/s, `penetration` the largest depth that is not corrected, m and rad.
    """

    tableau: Tableau
    step: float
    origin: float
    tolerance: float
    penetration: float


class AdaptiveStepSettings(NamedTuple):
    """The method and its tolerances. `tableau` has the type of the method, as `adaptive_methods` lists it."""

    tableau: NamedTuple
    tolerances: Tolerances
