"""Units: conversion of other units to SI with the package pint (the `units` extra)."""

import importlib.util
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Literal

from ..common.misspelled import SuggestsAttributes, one_of
from ..common.pickles import PickledByName
from ..errors import ModelError, missing_package
from .pose import numbers

#: SI unit of each quantity; angles are in radians.
SI = {
    "length": "m",
    "mass": "kg",
    "time": "s",
    "angle": "rad",
    "inertia": "kg m^2",
    "density": "kg/m^3",
    "force": "N",
    "moment": "N m",
    "gravity": "m/s^2",
    "velocity": "m/s",
    "angular_velocity": "rad/s",
    "volume": "m^3",
}
#: The dimensions of the symbols in products of SI units. A second is the unit of time of all systems.
DIMENSION_OF_SYMBOL = {"m": "length", "kg": "mass", "N": "force", "rad": "angle"}
System = Literal["SI", "mm-kg-s", "cm-kg-s", "cm-g-s", "inch-pound"]
#: Units of each system that differ from SI.
SYSTEMS: dict[System, dict[str, str]] = {
    "SI": {},
    "mm-kg-s": {
        "length": "mm",
        "inertia": "kg mm^2",
        "density": "kg/mm^3",
        "force": "kg mm/s^2",
        "moment": "kg mm^2/s^2",
        "gravity": "mm/s^2",
        "velocity": "mm/s",
        "volume": "mm^3",
    },
    "cm-kg-s": {
        "length": "cm",
        "inertia": "kg cm^2",
        "density": "kg/cm^3",
        "force": "kg cm/s^2",
        "moment": "kg cm^2/s^2",
        "gravity": "cm/s^2",
        "velocity": "cm/s",
        "volume": "cm^3",
    },
    "cm-g-s": {
        "length": "cm",
        "mass": "g",
        "inertia": "g cm^2",
        "density": "g/cm^3",
        "force": "dyn",
        "moment": "dyn cm",
        "gravity": "cm/s^2",
        "velocity": "cm/s",
        "volume": "cm^3",
    },
    "inch-pound": {
        "length": "in",
        "mass": "lb",
        "inertia": "lb in^2",
        "density": "lb/in^3",
        "force": "lbf",
        "moment": "lbf in",
        "gravity": "in/s^2",
        "velocity": "in/s",
        "volume": "in^3",
    },
}
#: Factors of some units besides SI units. They equal the factors of pint, whose registry takes a second to import.
FACTORS = {
    "length": {"cm": 0.01, "mm": 0.001},
    "mass": {"g": 0.001},
    "time": {"ms": 0.001},
    "angle": {"deg": 0.017453292519943295},
    "angular_velocity": {"deg/s": 0.017453292519943295},
    "force": {"kN": 1000.0},
    "moment": {"N mm": 0.001},
}
# A number, and units with integer powers. Other text never reaches pint, which can take forever on nested powers.
NUMBER = r"([-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)"
UNIT = r"(?:°|[^\W\d]\w*)(?:\s*(?:\^|\*\*)\s*-?\d)?"
PRODUCT = rf"{UNIT}(?:(?:\s*[*/·]\s*|\s+){UNIT})*"
MEASUREMENT = re.compile(rf"\s*{NUMBER}\s*({PRODUCT})\s*")


class Units(PickledByName, SuggestsAttributes):
    """A system of units, with methods that convert values to SI.

    Parameters
    ----------
    name : "SI", "mm-kg-s", "cm-kg-s", "cm-g-s" or "inch-pound"
        The metric systems are consistent: the unit of force is the unit of mass times the unit of acceleration, for
        example kg mm/s^2 (a millinewton) in mm-kg-s. The system inch-pound has the pound as the unit of mass and the
        pound-force as the unit of force.
    degrees : bool
        Whether angles are in degrees; otherwise they are in radians.

    Attributes
    ----------
    units : dict of str
        Unit of each quantity.

    Raises
    ------
    ModelError
        If the system is unknown.
    ImportError
        If pint is not installed.

    Examples
    --------
    >>> import rbchain as rb
    >>> units = Units("cm-kg-s")
    >>> rb.Inertia.box(units.length([30, 2, 2.111]), mass=units.mass("2.2 lb")).inertia.round(6).diagonal().tolist()
    [7e-05, 0.007521, 0.007518]
    >>> units.quantity("5 N", "force"), units.gravity([0, 0, -981]).tolist()
    (5.0, [0.0, 0.0, -9.81])
    """

    def __init__(self, name: System = "SI", degrees: bool = False) -> None:
        one_of("units", name, [*SYSTEMS], ModelError)
        if not isinstance(degrees, bool):
            raise ModelError(f"degrees is {degrees!r}; expected True or False")
        self.name, self.degrees = name, degrees
        self.units = SI | SYSTEMS[name] | ({"angle": "deg", "angular_velocity": "deg/s"} if degrees else {})
        _refuse_missing_pint()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Units):
            return NotImplemented
        return (self.name, self.degrees) == (other.name, other.degrees)

    def __hash__(self) -> int:
        return hash((self.name, self.degrees))

    def __repr__(self) -> str:
        return f"Units({self.name!r}{', degrees=True' if self.degrees else ''})"

    def quantity(self, value: Any, dimension: str) -> Any:
        """Convert a quantity to SI.

        Parameters
        ----------
        value : number or array, str, pint.Quantity, or list of these
            Plain numbers are in the units of this system. A string contains a number and a unit, such as "30 cm".
        dimension : str
            Kind of quantity: "length", "mass", "time", "angle", "inertia", "density", "force", "moment", "gravity",
            "velocity", "angular_velocity" or "volume".

        Returns
        -------
        float or array

        Raises
        ------
        ModelError
            If `value` is not a number, or its unit is not a unit of this kind of quantity.

        Examples
        --------
        >>> Units("mm-kg-s").quantity(["1 in", 10], "length").tolist()
        [0.0254, 0.01]
        """
        if dimension not in SI:
            raise ModelError(f"dimension is {dimension!r}; expected one of {', '.join(SI)}")
        if _is_mixed(value):
            return _each(value, dimension, lambda x: self.quantity(x, dimension))
        if isinstance(value, str):
            found = self._measured(value, dimension)
        elif _has_unit(value):
            found = self._in_si(value, value, dimension)
        else:
            found = numbers(value, dimension) * _factor(self.units[dimension], dimension)
        found = numbers(found, dimension)
        return found if found.ndim else float(found)

    def in_si(self, value: Any, unit: str) -> Any:
        """Convert a quantity of any dimension to SI.

        Parameters
        ----------
        value : number or array, str, pint.Quantity, or list of these
            As for `quantity`.
        unit : str
            The SI unit of the quantity, a product of powers of m, kg, s, N and rad, such as "N m/rad" or "N/(m s)".

        Returns
        -------
        float or array

        Raises
        ------
        ModelError
            As for `quantity`.

        Examples
        --------
        >>> Units("mm-kg-s").in_si([3.0, "1 N/mm"], "N/m").tolist()
        [3.0, 1000.0]
        """
        if _is_mixed(value):
            return _each(value, unit, lambda x: self.in_si(x, unit))
        if isinstance(value, str):
            match = MEASUREMENT.fullmatch(value)
            try:
                if match is not None:
                    return converted(float(match[1]), match[2], unit)
            except ModelError:
                pass
            raise ModelError(f"found {value!r}; expected a number and a unit such as '1 {unit}'")
        if _has_unit(value):
            return _to(value, unit)
        found = numbers(value, unit, finite=False) * self._factor_of(unit)
        return found if found.ndim else float(found)

    def _factor_of(self, unit: str) -> float:
        """Return the factor that converts numbers of this system to a product of SI units."""
        factor, (over, _, under) = 1.0, unit.partition("/")
        for part, sign in ((over, 1), (under.strip("()"), -1)):
            for name in part.split():
                symbol, _, power = name.partition("^")
                dimension = DIMENSION_OF_SYMBOL.get(symbol)
                if dimension:
                    factor *= _factor(self.units[dimension], dimension) ** (sign * int(power or 1))
        return factor

    def length(self, value: Any) -> Any:
        """Convert a length to m."""
        return self.quantity(value, "length")

    def mass(self, value: Any) -> Any:
        """Convert a mass to kg."""
        return self.quantity(value, "mass")

    def time(self, value: Any) -> Any:
        """Convert a time to s."""
        return self.quantity(value, "time")

    def angle(self, value: Any) -> Any:
        """Convert an angle to rad."""
        return self.quantity(value, "angle")

    def inertia(self, value: Any) -> Any:
        """Convert a moment of inertia or an inertia tensor to kg m^2."""
        return self.quantity(value, "inertia")

    def density(self, value: Any) -> Any:
        """Convert a density to kg/m^3."""
        return self.quantity(value, "density")

    def force(self, value: Any) -> Any:
        """Convert a force to N."""
        return self.quantity(value, "force")

    def moment(self, value: Any) -> Any:
        """Convert a moment to N m."""
        return self.quantity(value, "moment")

    def gravity(self, value: Any) -> Any:
        """Convert an acceleration to m/s^2."""
        return self.quantity(value, "gravity")

    def velocity(self, value: Any) -> Any:
        """Convert a velocity to m/s."""
        return self.quantity(value, "velocity")

    def angular_velocity(self, value: Any) -> Any:
        """Convert an angular velocity to rad/s."""
        return self.quantity(value, "angular_velocity")

    def volume(self, value: Any) -> Any:
        """Convert a volume to m^3."""
        return self.quantity(value, "volume")

    def _measured(self, text: str, dimension: str) -> Any:
        """Convert a string such as "30 cm" to SI."""
        match = MEASUREMENT.fullmatch(text)
        if match is None:
            raise self._unfit(text, dimension)
        factor = _known_factor(match[2], dimension)
        if factor is not None:
            return float(match[1]) * factor
        try:
            measured = _registry().Quantity(float(match[1]), match[2])
        except _pint().errors.PintError:
            raise self._unfit(text, dimension) from None
        return self._in_si(measured, text, dimension)

    def _in_si(self, measured: Any, value: Any, dimension: str) -> Any:
        """Convert a pint.Quantity to SI; `value` is the original for the error message."""
        try:
            return _to(measured, SI[dimension])
        except ModelError:
            raise self._unfit(value, dimension) from None

    def _unfit(self, value: Any, dimension: str) -> ModelError:
        article = "an" if dimension[0] in "aeiou" else "a"
        found = repr(value) if isinstance(value, str) else f"'{value}'"
        quantity = dimension.replace("_", " ")
        return ModelError(f"{quantity} is {found}; expected {article} {quantity} such as '1 {self.units[dimension]}'")


@cache
def _refuse_missing_pint() -> None:
    """Raise an ImportError if pint is not installed, without importing it."""
    try:
        found = importlib.util.find_spec("pint")
    except ValueError:  # the object registered under the name is not a module
        found = None
    if found is None:
        raise ImportError(missing_package("units need the package pint", "units"))


def _pint() -> Any:
    """Import pint when it is first needed."""
    import pint

    return pint


@cache
def _registry() -> Any:
    return _pint().UnitRegistry()


def converted(value: float, unit: str, other: str) -> float:
    """Convert a number from one unit to another. Raises ModelError if they measure different quantities."""
    for factors in FACTORS.items():
        known = {SI[factors[0]]: 1.0} | factors[1]
        if unit in known and other in known:
            return value * (known[unit] / known[other])
    _refuse_missing_pint()
    try:
        measured = _registry().Quantity(value, unit)
    except _pint().errors.PintError:
        raise ModelError(f"{unit!r} is not a unit") from None
    return float(_to(measured, other))


def _to(measured: Any, unit: str) -> Any:
    """Convert a pint.Quantity to a unit. Raises ModelError if they measure different quantities."""
    try:
        other = type(measured)(1.0, unit)
        # pint treats angles as dimensionless, so it would accept plain numbers as angles, and Hz as rad/s
        if str(measured.to_root_units().units) != str(other.to_root_units().units):
            raise ModelError(f"{measured.units} is not a unit of the same quantity as {unit}")
        return measured.to(unit).magnitude
    except _pint().errors.PintError:
        raise ModelError(f"{measured.units} is not a unit of the same quantity as {unit}") from None


def _known_factor(unit: str, dimension: str) -> float | None:
    """Return the factor that converts from a unit to SI, or None if only pint knows it."""
    return 1.0 if unit == SI[dimension] else FACTORS.get(dimension, {}).get(unit)


@cache
def _factor(unit: str, dimension: str) -> float:
    """Return the factor that converts numbers from a unit to SI."""
    known = _known_factor(unit, dimension)
    return float(_registry().Quantity(1.0, unit).to(SI[dimension]).magnitude) if known is None else known


def _is_mixed(value: Any) -> bool:
    """Whether a value is a list whose entries have to be converted one by one."""
    return isinstance(value, (list, tuple)) and any(isinstance(x, (str, list, tuple)) or _has_unit(x) for x in value)


def _each(values: Sequence[Any], what: str, convert: Callable[[Any], Any]) -> Any:
    """Convert the entries of a list. `what` names it in a message."""
    try:
        return numbers([convert(x) for x in values], what)
    except RecursionError:
        raise ModelError(f"{what} is a list that contains itself or is nested too deeply; expected numbers") from None


def _has_unit(value: Any) -> bool:
    return hasattr(value, "magnitude") and hasattr(value, "to_root_units")
