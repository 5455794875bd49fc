"""Progress messages of compilations, with estimates of their times.

A driver takes a time in proportion to the number of functions that it compiles. The speed of this machine, at its
present load, follows from the functions that are compiled already.
"""

import contextlib

from ...common.progress import progress

#: How many functions the drivers of a module compile, and how many more for the types of parts of a driver: counts of
#: batches with an empty cache. Their sums are right within a quarter.
FUNCTIONS = {"trajectories": 215, "dynamics": 90, "closed_chains": 140, "derivatives": 130, "matrices": 60}
FUNCTIONS_OF_PARTS = {
    "SharedActions": 70,
    "Samplers": 40,
    "ContactRecords": 200,
    "RosenbrockTableau": 110,
    "RadauTableau": 115,
    "SensitivitySettings": 130,
    "ConstraintTables": 70,
}
#: Which share of the functions is new if this process has compiled others before.
NEW_FUNCTIONS = 2 / 3
#: Which share of the time passes until all functions are compiled; the rest optimizes and writes machine code.
SHARE_OF_FUNCTIONS = 0.88

_running, _compiled = [], [0]


def expected_functions(driver, types):
    """Return the number of functions that a driver, "module.function", compiles for these types, as text; or None."""
    functions = FUNCTIONS.get(driver.partition(".")[0])
    if functions is None:
        return None
    return functions + sum(count for part, count in FUNCTIONS_OF_PARTS.items() if f"{part}(" in types)


@contextlib.contextmanager
def announced(driver, types, is_kept):
    """Show the progress of the compilation of a driver inside a `with` statement."""
    kept = "later processes load it from the cache"
    lost = "set NUMBA_CACHE_DIR to a folder that can be written, to keep it"
    expected = expected_functions(driver, types)
    if expected is not None and _compiled[0] > 0:
        expected *= NEW_FUNCTIONS
    total = None if expected is None else round(expected / SHARE_OF_FUNCTIONS)
    with progress(f"Compiling {driver}; {kept if is_kept else lost}", total, is_estimate=True) as work:
        _running.append(work)
        try:
            yield work
        finally:
            _running.remove(work)


def count_function():
    """Count a function that has been compiled."""
    _compiled[0] += 1
    for work in _running[-1:]:
        work.advance()
