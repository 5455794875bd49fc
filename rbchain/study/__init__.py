"""Monte Carlo studies: reproducible and resumable, on one machine or on a cluster.

`Study` describes a study and runs it. `Dispersion` lists the parameters that can vary, and `Measure` the quantities
that a study can record.
"""

from typing import Any

import lazy_loader

from ..common.misspelled import no_attribute
from ..errors import missing_package

# `__init__.pyi` lists the public names. Each is imported on first use: a report needs neither Numba nor SciPy.
_imported, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


#: Former names, with their replacements.
RENAMED = {"open_dataset": "rb.load_results(folder)", "run_study": "rb.Study.read(file).run(out)"}


def __getattr__(name: str) -> Any:
    if name in RENAMED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it is now {RENAMED[name]}")
    if name not in __dir__():
        raise no_attribute(f"module {__name__!r}", name, __dir__())
    try:
        return _imported(name)
    except ModuleNotFoundError as error:
        raise ImportError(missing_package(f"studies need the package {error.name}", "study")) from None
