"""Read and write models. The module of each format is imported when it is first used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..common.calls import explains_calls
from ..common.misspelled import no_attribute
from ..common.real_arrays import excerpt
from ..common.whole_files import whole_file
from ..errors import FileFormatError, ModelError
from ..model.validation import naming

if TYPE_CHECKING:
    from ..facade.model import Model
    from ..model.joint import AnyJoint
    from . import dh, meshes, mjcf, motions, native, sdf, urdf  # noqa: F401

URDF_ENDINGS = (".urdf", ".xacro")
SDF_ENDINGS = (".sdf", ".world")
XML_ENDINGS = (*URDF_ENDINGS, *SDF_ENDINGS, ".xml")
DESCRIPTION = "_description"  # end of the names of robots, including robots in MJCF
MODULES = ("dh", "meshes", "mjcf", "motions", "native", "sdf", "urdf")


@explains_calls()
def load(
    path: str | Path,
    *,
    base: AnyJoint | None = None,
    nonphysical_inertia: Literal["refuse", "warn"] = "warn",
    density: float | str | None = None,
    arguments: Mapping[str, Any] | None = None,
) -> Model:
    """Read a model from a file: URDF, SDF, MJCF (extra `mjcf`) or rbchain's format (`.toml`).

    The root element of an XML file determines its format.

    Parameters
    ----------
    path : str or Path
        The file, with the ending `.urdf`, `.xacro` (URDF), `.sdf`, `.world` (SDF), `.xml` or `.toml`. Or the name of a
        module of the package robot_descriptions (extra `robots`), such as "panda_description", which downloads the
        files of this robot.
    base : joint, optional
        For URDF and SDF only: the joint between the world and the root link, such as `rbchain.Free()`. By default the
        root link is fixed to the world. An SDF file may contain this joint.
    nonphysical_inertia : "warn" or "refuse"
        Whether an inertia tensor that is not physically possible causes a warning or raises a ModelError. The default
        is "warn", because many published robots have such tensors: the measured inertia of link 3 of the Puma 560
        violates the triangle inequality. A `.toml` file has a key of this name instead.
    density : float (kg/m^3) or str, optional
        For URDF only: the density, or the material such as "aluminum" (`rbchain.density_of`), of moving bodies whose
        links have no mass. Their inertia is the sum of the inertias of their collision shapes; links without collision
        shapes use their visuals. Overlaps count twice. Meshes must be closed, and need the `meshes` extra. The warning
        lists the links. Bodies with a mass do not change.
    arguments : dict, optional
        For URDF only: xacro expands the macros of the file with these values of its arguments; {} for their defaults.
        Needs the `xacro` extra. xacro evaluates Python expressions in the file, so expand only files that you trust.
        By default, a file that uses macros raises an error.

    Returns
    -------
    Model

    Raises
    ------
    FileFormatError
        If rbchain does not read files with this ending, the file does not follow its format, or an MJCF file contains
        forces that rbchain cannot represent.
    ModelError
        If the mechanism is invalid; the message contains the name of the body.
    FileNotFoundError
        If the file does not exist.

    Warns
    -----
    UserWarning
        If rbchain omits parts of the file or treats them differently. One warning lists all of them.

    Examples
    --------
    >>> import rbchain as rb
    >>> arm = rb.load("examples/puma560.urdf")
    >>> arm.n_bodies
    6
    >>> rb.load("examples/puma560.urdf", base=rb.Free()).nv
    12
    """
    if isinstance(path, str) and path.endswith(DESCRIPTION) and path.isidentifier():
        from .robot_names import file_of_robot

        path = file_of_robot(path)
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in (".toml", *XML_ENDINGS):
        raise FileFormatError(
            f"{path}: the name ends in {path.suffix!r}; expected '.urdf', '.sdf', '.xml' (MJCF) or '.toml'"
        )
    root = _root_name(path) if ending in XML_ENDINGS else None
    if root == "robot" or (root not in ("mujoco", "sdf") and ending in URDF_ENDINGS):
        from .urdf import load_urdf

        with naming(path):
            return load_urdf(path, base, nonphysical_inertia, density, arguments)
    if density is not None:
        raise FileFormatError(
            f"{path}: density is {density!r}; remove density: it applies only to "
            "URDF files, in which inertias may be missing"
        )
    if arguments is not None:
        raise FileFormatError(
            f"{path}: arguments is {excerpt(arguments)}; remove arguments: it applies "
            "only to URDF files, which may use xacro"
        )
    if root == "sdf" or (root != "mujoco" and ending in SDF_ENDINGS):
        from .sdf import load_sdf

        with naming(path):
            return load_sdf(path, base, nonphysical_inertia)
    if base is not None:
        raise FileFormatError(
            f"{path}: base is {base!r}; remove base: it applies only to URDF and SDF files, "
            "which may not define the joint of the root link"
        )
    if ending == ".toml":
        from .native import load_toml

        return load_toml(path)
    if root not in ("mujoco", None):
        raise FileFormatError(
            f"{path}: the root element is <{root}>; expected <mujoco> (MJCF), <robot> (URDF) or <sdf>"
        )
    from .mjcf import load_mjcf

    with naming(path):
        return load_mjcf(path, nonphysical_inertia)


def _root_name(path: Path) -> str | None:
    from .xml_reading import root_name  # imports lxml

    return root_name(path)


def save(model: Model, path: str | Path) -> None:
    """Write a model to a file: rbchain's format (`.toml`), which stores the complete model, URDF or MJCF (`.xml`).

    Parameters
    ----------
    model : Model
        A single model, not a batch of samples.
    path : str or Path
        The file; its ending determines the format. An existing file is replaced.

    Raises
    ------
    FileFormatError
        If rbchain does not write files with this ending, or the format does not support a joint of the model; for MJCF,
        also if MuJoCo does not accept the inertia of a body.
    ModelError
        If the model is a batch of samples.

    Warns
    -----
    UserWarning
        If the format cannot represent parts of the model; the warning lists them.

    Examples
    --------
    >>> import rbchain as rb, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "chain.toml"
    >>> rb.save(rb.Model.serial_chain(2), file)
    >>> file.read_text().splitlines()[0]
    'format = "rbchain 1"'
    >>> rb.load(file).n_bodies
    2
    """
    from ..facade.model import Model as Saved

    if not isinstance(model, Saved):
        raise ModelError(f"model is {excerpt(model)}; expected a Model. Call save(model, path)")
    if model.batch_shape:
        raise ModelError(
            f"model {model.name!r} is a batch {model.batch_shape} of samples; expected a single model, such as model[0]"
        )
    path = Path(path)
    ending = path.suffix.lower()
    if ending == ".toml":
        from .write_native import toml_of

        text = toml_of(model)
    elif ending == ".urdf":
        from .write_urdf import urdf_of

        text = urdf_of(model)
    elif ending == ".xml":
        from .write_mjcf import mjcf_of

        text = mjcf_of(model)
    else:
        raise FileFormatError(f"{path}: the name ends in {path.suffix!r}; expected '.toml', '.urdf' or '.xml' (MJCF)")
    try:
        content = text.encode()
    except UnicodeEncodeError as error:
        bad = text[error.start : error.end]
        raise FileFormatError(
            f"{path}: a name in the model contains {bad!r}, which UTF-8 cannot encode; expected valid Unicode"
        ) from None
    with whole_file(path) as partial:
        partial.write_bytes(content)


if not TYPE_CHECKING:  # with __getattr__, a type checker would accept every name

    def __getattr__(name: str) -> Any:
        if name not in MODULES:
            raise no_attribute(f"module {__name__!r}", name, __dir__())
        return import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *MODULES})
