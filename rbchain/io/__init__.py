"""Models from files. The modules of the formats are imported when they are first used."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import FileFormatError, ModelError
from ..misspelt import no_attribute

if TYPE_CHECKING:
    from ..chain import Model
    from ..model.joint import AnyJoint
    from . import dh, meshes, mjcf, native, urdf  # noqa: F401

MODULES = ("dh", "meshes", "mjcf", "native", "urdf")


def load(path: str | Path, *, base: AnyJoint | None = None, nonphysical_inertia: str = "warn") -> Model:
    """A model from a file: URDF (`.urdf`), MJCF (`.xml`, with the extra `mjcf`) or rbchain's own (`.toml`).

    Parameters
    ----------
    path : str or Path
    base : joint, optional
        Of URDF: what the root link hangs on the world by, such as `rbchain.Free()`; fixed if not given.
    nonphysical_inertia : "warn" or "refuse"
        What to do about an inertia tensor that no body can have. Many published robots have one (the measured inertia
        of the Puma's link 3 breaks the triangle inequality); `ModelBuilder` refuses them unless told otherwise, and so
        do files of rbchain's own, which say it themselves.

    Returns
    -------
    Model

    Raises
    ------
    FileFormatError
        If the file is not what its name says, is of a kind that rbchain does not read, or is an MJCF with forces that
        rbchain cannot represent.
    ModelError
        If the mechanism in it cannot be; the message names the body.
    FileNotFoundError

    Warns
    -----
    UserWarning
        Of parts of the file that the model lacks, or that act in another way.

    Examples
    --------
    >>> import rbchain as rb
    >>> arm = rb.load("examples/puma560.urdf")
    >>> arm.n_bodies
    6
    >>> rb.load("examples/puma560.urdf", base=rb.Free()).nv
    12
    """
    path = Path(path)
    ending = path.suffix.lower()
    if ending == ".urdf":
        from .urdf import load_urdf

        return load_urdf(path, base, nonphysical_inertia)
    if base is not None:
        raise FileFormatError(f"{path}: base is {base!r}; expected None, for only a URDF leaves open what it hangs on")
    if ending == ".toml":
        from .native import load_toml

        return load_toml(path)
    if ending == ".xml":
        from .mjcf import load_mjcf

        return load_mjcf(path, nonphysical_inertia)
    raise FileFormatError(
        f"{path}: rbchain reads files that end in .urdf, .xml or .toml; found {path.suffix or 'no ending'}"
    )


def save(model: Model, path: str | Path) -> None:
    """Write a model to a file: rbchain's own (`.toml`), which says all of it, or URDF (`.urdf`).

    Parameters
    ----------
    model : Model
        Of one sample.
    path : str or Path

    Raises
    ------
    FileFormatError
        If files with this ending are not written, or the model has joints that the format does not know.
    ModelError
        If the model is a batch of samples.

    Warns
    -----
    UserWarning
        Of what the model has and the format cannot say.

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
    if model.batch_shape:
        raise ModelError(f"model {model.name!r} is a batch {model.batch_shape} of samples; expected a single one")
    path = Path(path)
    ending = path.suffix.lower()
    if ending == ".toml":
        from .native import toml_of

        text = toml_of(model)
    elif ending == ".urdf":
        from .write_urdf import urdf_of

        text = urdf_of(model)
    else:
        raise FileFormatError(f"{path}: expected .toml or .urdf; found {path.suffix or 'no ending'}")
    try:
        content = text.encode()
    except UnicodeEncodeError as error:
        bad = text[error.start : error.end]
        raise FileFormatError(f"{path}: a name contains {bad!r}, which UTF-8 does not have") from None
    path.write_bytes(content)


if not TYPE_CHECKING:  # a type checker would take every name for an attribute

    def __getattr__(name: str) -> Any:
        if name not in MODULES:
            raise no_attribute(f"module {__name__!r}", name, __dir__())
        return import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *MODULES})
