"""Models from files."""

from pathlib import Path

from ..errors import FileFormatError


def load(path, *, base=None, nonphysical_inertia="warn"):
    """A model from a file: URDF (`.urdf`).

    Parameters
    ----------
    path : str or Path
    base : joint, optional
        What the root link hangs on the world by, such as `rbchain.Free()`; fixed if not given.
    nonphysical_inertia : "warn" or "refuse"
        What to do about an inertia tensor that no body can have. Many published robots have one (the measured inertia
        of the Puma's link 3 breaks the triangle inequality); `ModelBuilder` refuses them unless told otherwise.

    Returns
    -------
    Model

    Raises
    ------
    FileFormatError
        If the file is not what its name says, or is of a kind that rbchain does not read.
    ModelError
        If the mechanism in it cannot be; the message names the body.
    FileNotFoundError

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
    if path.suffix.lower() == ".urdf":
        from .urdf import load_urdf

        return load_urdf(path, base, nonphysical_inertia)
    raise FileFormatError(f"{path}: rbchain reads files that end in .urdf; found {path.suffix or 'no ending'}")
