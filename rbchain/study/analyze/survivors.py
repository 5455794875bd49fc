"""Sentences about samples that failed or have warnings.

Statistics describe the samples that did not fail. The sentences state why samples failed, and on what this depends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..plan.outcomes import NOT_RUN, WARNINGS, has_failed, sentences_of_warnings, status_in_words

if TYPE_CHECKING:
    import xarray

    from ..store.stored_results import StoredResults

LEVEL = 0.01  # probability that a parameter of independent failures stands out, for all parameters together
MOST_COMPARED = 20_000  # failed samples, and others, evenly spaced
MOST_NAMED = 3  # parameters


def survivors_in(results: xarray.Dataset | StoredResults) -> str:
    """Return the sentence about the failed samples in results; empty if no sample failed."""
    names = results["parameter"].values if "parameter" in results else np.zeros(0, str)
    return survivors(results["status"].values, results["parameters"], names)


def warnings_in(results: xarray.Dataset | StoredResults) -> list[str]:
    """Return a sentence for each warning that samples in results have."""
    if WARNINGS not in results:
        return []
    return sentences_of_warnings(results[WARNINGS].values, int((results["status"].values != NOT_RUN).sum()))


def survivors(status: np.ndarray, parameters: Any, names: np.ndarray) -> str:
    """Return the sentence about the failed samples; empty if no sample failed.

    Parameters
    ----------
    status : (samples,) array of int
    parameters : array (samples, columns), or an array of results
        Random inputs. Only the samples that are compared are read.
    names : (columns,) array of str
        Names of the random inputs.
    """
    failed, run = np.flatnonzero(has_failed(status)), int((status != NOT_RUN).sum())
    if failed.size == 0:
        return ""
    codes, counts = np.unique(status[failed], return_counts=True)
    reasons = " ".join(f"{n:,} failed with {status_in_words(int(c))}" for c, n in zip(codes, counts, strict=True))
    succeeded = np.flatnonzero((status != NOT_RUN) & ~has_failed(status))
    held = f"The statistics describe the {succeeded.size:,} of {run:,} samples that succeeded."
    if succeeded.size == 0 or not len(names):
        return f"{held} {reasons}"
    of_failed, of_succeeded = (_values(parameters, _evenly_spaced(group)) for group in (failed, succeeded))
    return f"{held} {reasons} {_dependence(of_failed, of_succeeded, names)}"


def _evenly_spaced(numbers: np.ndarray) -> np.ndarray:
    return numbers[:: -(-numbers.size // MOST_COMPARED)]


def _values(parameters: Any, numbers: np.ndarray) -> np.ndarray:
    chosen = parameters[numbers]
    return chosen if isinstance(chosen, np.ndarray) else chosen.values


def _dependence(failed: np.ndarray, succeeded: np.ndarray, names: np.ndarray) -> str:
    """Name the parameters whose distribution differs between failed and other samples, the clearest first.

    The test is Kolmogorov and Smirnov's for two samples, with Bonferroni's correction for the number of parameters.
    """
    from scipy.stats import ks_2samp  # takes a second to import

    above = [np.where(np.isnan(x), np.inf, x) for x in (failed, succeeded)]  # NaN counts as a number of its own
    p = np.array([ks_2samp(*(x[:, c] for x in above)).pvalue for c in range(len(names))])
    chosen = [c for c in np.argsort(p, kind="stable") if p[c] < LEVEL / len(names)][:MOST_NAMED]
    if not chosen:
        return "The failures do not depend on a parameter recognizably: none stands out."
    found = [
        f"{names[c]} (median {np.median(x):.4g} in failed samples, {np.median(y):.4g} in others)"
        for c, x, y in ((c, failed[:, c], succeeded[:, c]) for c in chosen)
    ]
    return f"The failures depend on {', '.join(found)}."
