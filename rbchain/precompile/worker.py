"""Compile drivers in a separate process: it reads pickled signatures from its input, and prints one file for each."""

from __future__ import annotations

import importlib
import pickle
import sys
from collections.abc import Sequence
from pathlib import Path

from ..compiling import machine_code
from .signatures import Signature


def compiled_file(signature: Signature) -> Path:
    """Load or compile a driver; returns the file that holds its machine code."""
    dispatcher = getattr(importlib.import_module(signature.module), signature.name)
    dispatcher.compile(signature.types)
    file: Path | None = machine_code.files.get((dispatcher.py_func, signature.types))
    if file is None:
        sys.exit("its machine code cannot be stored; set NUMBA_CACHE_DIR to a folder that can be written")
    return file


def _main(signatures: Sequence[Signature]) -> None:
    files, sys.stdout = sys.stdout, sys.stderr  # Numba may print, for instance with NUMBA_DUMP_OPTIMIZED
    for signature in signatures:
        print(compiled_file(signature), file=files, flush=True)


if __name__ == "__main__":
    _main(pickle.loads(sys.stdin.buffer.read()))
