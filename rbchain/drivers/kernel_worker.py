"""Compile the kernels of a driver in a separate process, which reads the driver and the types from its input.

The process ends with its input, which remains open as long as the process that needs the kernels.
"""

import importlib
import os
import pickle
import sys
import threading

from ..compiling.numba_internals.kernels_of_driver import compile_kernels


def end_with_input():
    """End this process at the end of its input."""
    os.read(0, 1)  # not sys.stdin, whose lock this thread would hold when Python ends
    os._exit(0)


if __name__ == "__main__":
    module, name, types = pickle.load(sys.stdin.buffer)
    threading.Thread(target=end_with_input, daemon=True).start()
    compile_kernels(getattr(importlib.import_module(module), name), types)
