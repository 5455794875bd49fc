"""Densities of common materials."""

from ..common.misspelled import did_you_mean
from ..errors import ModelError
from .pose import positive

#: Densities in kg/m^3 at room temperature: rounded typical values of engineering handbooks, such as Shigley's
#: *Mechanical Engineering Design*, table A-5, and the CRC *Handbook of Chemistry and Physics*. The density of a part
#: may differ by a few percent for alloys and plastics, and by tens of percent for wood and concrete. Weigh the part if
#: this matters.
DENSITIES = {
    "ABS": 1050.0,
    "acrylic": 1180.0,
    "aluminum": 2700.0,
    "brass": 8500.0,
    "bronze": 8800.0,
    "carbon fiber": 1600.0,
    "cast iron": 7200.0,
    "concrete": 2400.0,
    "copper": 8960.0,
    "glass": 2500.0,
    "glass fiber": 1900.0,
    "gold": 19300.0,
    "ice": 917.0,
    "lead": 11340.0,
    "magnesium": 1740.0,
    "nylon": 1140.0,
    "oak": 720.0,
    "pine": 500.0,
    "PLA": 1240.0,
    "polycarbonate": 1200.0,
    "polyethylene": 950.0,
    "PTFE": 2200.0,
    "PVC": 1400.0,
    "rubber": 1100.0,
    "sea water": 1025.0,
    "silver": 10490.0,
    "stainless steel": 8000.0,
    "steel": 7850.0,
    "titanium": 4510.0,
    "tungsten": 19250.0,
    "water": 1000.0,
    "zinc": 7140.0,
}
#: Other names of materials. Carbon and glass fiber stand for their laminates with epoxy.
ALIASES = {
    "aluminium": "aluminum",
    "carbon fibre": "carbon fiber",
    "CFRP": "carbon fiber",
    "glass fibre": "glass fiber",
    "GFRP": "glass fiber",
    "iron": "cast iron",
    "polyamide": "nylon",
    "seawater": "sea water",
    "wood (oak)": "oak",
    "wood (pine)": "pine",
}


def _plain(name: str) -> str:
    """Name in lower case, with single spaces instead of hyphens, underscores and repeated spaces."""
    return " ".join(name.casefold().replace("-", " ").replace("_", " ").split())


_BY_NAME = {_plain(name): density for name, density in DENSITIES.items()}
_BY_NAME |= {_plain(alias): DENSITIES[name] for alias, name in ALIASES.items()}


def density_of(material: str | float) -> float:
    """Return the density of a material in kg/m^3.

    Parameters
    ----------
    material : str or float
        A name in `rbchain.model.materials.DENSITIES` or `ALIASES`, in upper or lower case; or a density in kg/m^3,
        which is returned unchanged.

    Returns
    -------
    float

    Raises
    ------
    ModelError
        If the name is unknown or the number is not positive.

    Examples
    --------
    >>> import rbchain as rb
    >>> density_of("Steel"), density_of("aluminum"), density_of(450)
    (7850.0, 2700.0, 450.0)
    >>> round(rb.Inertia.box((0.3, 0.02, 0.02111), density=density_of("steel")).mass, 3)
    0.994
    """
    if isinstance(material, str):
        density = _BY_NAME.get(_plain(material))
        if density is None:
            meant = did_you_mean(material, [*DENSITIES, *ALIASES])
            raise ModelError(f"material is {material!r}; expected a density in kg/m^3, or one of {_names()}{meant}")
        return density
    try:
        return positive(material, "density")
    except ModelError as error:
        raise ModelError(f"{error} in kg/m^3, or the name of a material: {_names()}") from None


def _names() -> str:
    return ", ".join(sorted([*DENSITIES, *ALIASES], key=str.casefold))
