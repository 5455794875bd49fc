"""Monte Carlo studies: reproducible and resumable, on one machine or on a cluster."""

from typing import TYPE_CHECKING, Never

from ..misspelt import no_attribute

try:
    from .description import Correlation, Dispersion, ModelSource, Outputs, Simulation, StopWhen
    from .designs import Factorial, LatinHypercube, Random, Sobol, Table
    from .distributions import (
        Discrete,
        LogNormal,
        MultivariateNormal,
        Normal,
        Scipy,
        Triangular,
        TruncatedNormal,
        Uniform,
    )
    from .measures import Measure
    from .opening import open_dataset
    from .pictures import Results
    from .study import Study, run_study
except ModuleNotFoundError as error:
    message = f"studies need the package {error.name}, which is missing: pip install 'rbchain[study]'"
    raise ImportError(message) from None

__all__ = [
    "Correlation",
    "Discrete",
    "Dispersion",
    "Factorial",
    "LatinHypercube",
    "LogNormal",
    "Measure",
    "ModelSource",
    "MultivariateNormal",
    "Normal",
    "Outputs",
    "Random",
    "Results",
    "Scipy",
    "Simulation",
    "Sobol",
    "StopWhen",
    "Study",
    "Table",
    "Triangular",
    "TruncatedNormal",
    "Uniform",
    "open_dataset",
    "run_study",
]


if not TYPE_CHECKING:  # a type checker would accept every name as an attribute

    def __getattr__(name: str) -> Never:
        raise no_attribute(f"module {__name__!r}", name, __all__)
