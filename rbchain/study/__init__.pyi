"""The public names, each from its module: read by type checkers, and by the package itself, which imports on demand."""

from .describe.correlations import Correlation
from .describe.description import Assembly, Outputs, Simulation, StopWhen
from .describe.designs import Factorial, GivenValues, LatinHypercube, Random, Sobol, Table
from .describe.dispersions import Dispersion
from .describe.distributions import Discrete, Gumbel, LogNormal, Normal, Triangular, TruncatedNormal, Uniform, Weibull
from .describe.measures import Measure
from .describe.model_source import ModelSource
from .describe.multivariate_normal import MultivariateNormal
from .describe.scipy_distributions import Scipy
from .loading import load_results
from .plan.inputs import Input, Inputs
from .rare.result import Probability
from .show.accessor import Results
from .study import Study

__all__ = [
    "Assembly",
    "Correlation",
    "Discrete",
    "Dispersion",
    "Factorial",
    "GivenValues",
    "Gumbel",
    "Input",
    "Inputs",
    "LatinHypercube",
    "LogNormal",
    "Measure",
    "ModelSource",
    "MultivariateNormal",
    "Normal",
    "Outputs",
    "Probability",
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
    "Weibull",
    "load_results",
]
