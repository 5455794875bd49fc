"""Compile the kernels of a driver in a process of its own, which reads the driver and the types from its input."""

import importlib
import os
import pickle
import sys

if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(19)  # only what other processes leave
    module, name, types = pickle.loads(sys.stdin.buffer.read())
    getattr(importlib.import_module(module), name).compile_kernels(types)
