"""Provenance of results: versions, machine, command and git commit, and a log of all runs."""

import contextlib
import json
import os
import platform
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

LOG = "log.jsonl"


def provenance() -> dict[str, Any]:
    """Return versions, machine, command, and the state of the git repository in the working directory."""
    packages = {}
    for name in ("rbchain", "numpy", "numba", "scipy", "zarr", "xarray"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = "not installed"
    return {
        "versions": packages | {"python": platform.python_version()},
        "machine": platform.machine(),
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "git": _git_state(),
    }


def _git_state() -> str:
    """Return the commit, with a note if tracked files differ from it; empty outside of a repository."""
    try:
        commit, changed = (
            subprocess.run(["git", *asked], capture_output=True, text=True, timeout=10, check=True).stdout.strip()
            for asked in (["rev-parse", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return commit + (", with uncommitted changes" if changed else "")


class Log:
    """The log of the runs into a folder, one JSON object per line. It is not part of the results."""

    def __init__(self, folder: str | Path) -> None:
        self.path, self.started = Path(folder) / LOG, time.perf_counter()

    def study_file(self) -> Path | None:
        """Return the file of the last study that ran into the folder; None if the log does not name one."""
        file = self._last("file")
        return self.path.parent / file if file else None

    def reason_not_written(self) -> str:
        """Return why the last study from Python is not in a file; empty if the log does not state the reason."""
        return self._last("not_written")

    def _last(self, key: str) -> str:
        """Return the last entry with this key; empty without one."""
        try:
            text = self.path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
        lines: list[Any] = []
        for line in text.splitlines():
            with contextlib.suppress(ValueError):  # the last line of a killed run may be incomplete
                lines.append(json.loads(line))
        found = [str(line[key]) for line in lines if isinstance(line, dict) and line.get(key)]
        return found[-1] if found else ""

    def write(self, **entries: Any) -> None:
        """Append a line with the time, the process and these entries."""
        stamp = {"time": datetime.now(UTC).isoformat(timespec="seconds"), "process": os.getpid()}
        line = (
            stamp | entries | {"seconds": round(time.perf_counter() - self.started, 3), "command": " ".join(sys.argv)}
        )
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
