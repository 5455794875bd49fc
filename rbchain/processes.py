"""The environment of processes that rbchain starts."""

import os
import sys


def environment_of_process(**variables: str) -> dict[str, str]:
    """Return the environment of a process that imports what this process imports, from the same places."""
    path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
    return os.environ | {"PYTHONSAFEPATH": "1", "PYTHONPATH": path, "RBCHAIN_QUIET": "1"} | variables
