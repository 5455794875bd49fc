"""What all commands share: their exit codes, and where results go."""

from pathlib import Path

EXIT_OK, EXIT_SOME_FAILED, EXIT_REFUSED, EXIT_INTERRUPTED = 0, 1, 2, 130


def writable(out: str | None, ending: str = ".npz") -> Path | None:
    """Where the results go, with this ending, found out before they are computed."""
    if out is None:
        return None
    path = Path(out if out.endswith(ending) else out + ending)
    if Path(out).is_dir() or path.is_dir():
        raise ValueError(f"--out {out}: this is a folder; expected a file")
    if not path.parent.is_dir():
        raise ValueError(f"--out {out}: there is no folder {path.parent}")
    existed = path.exists()
    with path.open("ab"):
        pass
    if not existed:
        path.unlink()
    return path
