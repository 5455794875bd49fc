"""Run a command of rbchain, and fail if it compiles a driver: python .ci/without_compiling.py study run FILE."""

import sys

import numba.core.event as events

from rbchain.cli import main


class Compilations(events.Listener):
    """Names of the functions that Numba compiles for a call from Python."""

    def __init__(self):
        self.names = []

    def on_start(self, event):
        """Numba begins to compile a function."""
        self.names.append(event.data["dispatcher"].__name__)

    def on_end(self, event):
        """Numba has compiled it."""


if __name__ == "__main__":
    compilations = Compilations()
    with events.install_listener("numba:compile", compilations):
        code = main(sys.argv[1:])
    if compilations.names:
        sys.exit(f"compiled {', '.join(compilations.names)}; expected machine code from the wheel")
    sys.exit(code)
