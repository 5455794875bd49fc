"""The integration methods, and the features that each of them supports.

The choices of `simulate`, of studies and of the command line follow from this table. It also determines which
combinations raise errors, the drivers that are compiled ahead of time, and the table of the documentation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from ..common.misspelled import did_you_mean
from ..errors import ArgumentError

#: Number of saved times by default.
DEFAULT_TIMES = 101
#: The names of the methods, for type checkers.
MethodName = Literal["rk45", "dop853", "rosenbrock", "radau", "rk4", "implicit", "moreau"]


@dataclass(frozen=True)
class Method:
    """An integration method.

    Attributes
    ----------
    name : MethodName
    title : str
        Short description of the method, for the documentation.
    order : int
    is_adaptive : bool
        Whether each sample has its own step size, which follows from tolerances.
    is_implicit_in_joints : bool
        Whether fixed steps are linearly implicit in the passive forces and the gains of the joints.
    has_contacts : bool
        Whether dry friction, hard stops and contacts are supported.
    has_events : bool
    uses_jacobians : bool
        Whether steps use derivatives of all forces.
    has_sensitivities : bool
    degree : int
        Degree in time of the states within a step.
    """

    name: MethodName
    title: str
    order: int
    is_adaptive: bool = False
    is_implicit_in_joints: bool = False
    has_contacts: bool = False
    has_events: bool = True
    uses_jacobians: bool = False
    has_sensitivities: bool = False
    degree: int = 4

    @property
    def locates_contacts(self) -> bool:
        """Whether the method computes contacts from modes and ends steps where the modes change."""
        return self.has_contacts and self.is_adaptive


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "rk45",
            "Runge-Kutta method of Dormand and Prince",
            5,
            is_adaptive=True,
            has_contacts=True,
            has_sensitivities=True,
        ),
        Method(
            "dop853",
            "Runge-Kutta method of Dormand and Prince for small tolerances",
            8,
            is_adaptive=True,
            has_sensitivities=True,
            degree=7,
        ),
        Method(
            "rosenbrock",
            "Rosenbrock method Rodas5P",
            5,
            is_adaptive=True,
            uses_jacobians=True,
            has_contacts=True,
        ),
        Method(
            "radau",
            "Radau IIA",
            9,
            is_adaptive=True,
            uses_jacobians=True,
            has_events=False,
            degree=5,
        ),
        Method(
            "rk4",
            "classical Runge-Kutta method",
            4,
            has_sensitivities=True,
        ),
        Method(
            "implicit",
            "linearly implicit Euler method",
            1,
            is_implicit_in_joints=True,
        ),
        Method(
            "moreau",
            "Moreau's midpoint scheme",
            1,
            is_implicit_in_joints=True,
            has_contacts=True,
        ),
    )
}


def names_of(methods: Callable[[Method], bool], last: str = "or", quote: str = '"') -> str:
    """Return the names of the methods for which a condition holds, as a list in a sentence.

    Examples
    --------
    >>> names_of(lambda method: method.has_sensitivities)
    '"rk45", "dop853" or "rk4"'
    """
    names = [f"{quote}{name}{quote}" for name, method in METHODS.items() if methods(method)]
    return f" {last} ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def method_named(name: Any) -> Method:
    """Return a method. Raises ArgumentError if there is none with this name."""
    if not isinstance(name, str) or name not in METHODS:
        hint = did_you_mean(name, METHODS) if isinstance(name, str) else ""
        raise ArgumentError(f"method is {name!r}; expected {names_of(lambda method: True)}{hint}")
    return METHODS[name]


def table_for_documentation() -> str:
    """Return the table of all methods in Markdown."""
    columns: dict[str, Callable[[Method], Any]] = {
        "method": lambda method: f'`"{method.name}"`',
        "order": lambda method: method.order,
        "steps": lambda method: "adaptive" if method.is_adaptive else "fixed",
        "contacts, dry friction, stops": lambda method: method.has_contacts,
        "events": lambda method: method.has_events,
        "derivatives": lambda method: method.has_sensitivities,
        "delays per sample": lambda method: True if method.is_adaptive else "multiples of the step",
    }
    words = {True: "yes", False: "no"}
    rows = [list(columns), ["---"] * len(columns)]
    for method in METHODS.values():
        cells = [entry(method) for entry in columns.values()]
        cells[0] = f"{cells[0]}: {method.title}"
        rows.append([words[cell] if isinstance(cell, bool) else str(cell) for cell in cells])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"
