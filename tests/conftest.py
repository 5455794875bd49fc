"""Fixtures that several test modules share."""

import signal
import warnings
import zlib
from functools import cache

import pytest

from . import plain_python
from .fuzz import cases
from .mechanisms import CHUNKS, MECHANISMS, TREES_PER_CHUNK, random_trees
from .quantities import Magnitudes, random_state

collect_ignore = [f"oracles/{name}.py" for name in ("drake_sdf", "drake_linear", "exudyn_modes")]  # need other packages
STATES_PER_TREE = 3
QUICK_TREES = 3
HANG_LIMIT = 1800.0  # s; ends a test that hangs, never one that runs on a busy machine
# Started first, so that at the end no worker still runs a long file while the others are idle. Neighbors compile
# different drivers, so that no worker waits for another.
LONGEST = (
    *("test_passive_forces", "test_simulation", "test_quantities", "test_run", "test_closed_motions", "test_pairs"),
    *("test_contact", "test_cli", "test_contacts_within_steps", "test_signal_breaks", "test_machine_code"),
    *("test_measures_in_steps", "test_batches", "test_derivatives", "test_hostile", "test_damage", "test_cache"),
    *("test_elastic_stops", "test_contact_events", "test_sensitivities", "test_arguments", "test_compiled_arguments"),
    *("test_compiled_simulations", "test_controllers", "test_models", "test_constrained_derivatives"),
)
# Examples in docstrings run in plain Python, which takes less time than compiling them, except for these.
COMPILED_EXAMPLES = {
    *("rbchain.acting.drives.PID", "rbchain.simulate.simulation.simulate", "rbchain.study.study.Study"),
    "rbchain.plots.motions.plot",
}
# Collecting all files takes longer than the quick tests; `-m quick` collects only these.
QUICK_FILES = {
    *("test_derivatives.py", "test_drives.py", "test_dynamics.py", "test_force_balance.py"),
    *("test_identification.py", "test_quantities.py", "test_smoke.py", "test_water.py"),
}


class QuickFiles:
    """Skip files without quick tests."""

    def pytest_ignore_collect(self, collection_path):
        return True if collection_path.is_file() and collection_path.name not in QUICK_FILES else None


def pytest_addoption(parser):
    """`--fuzz N`: how many random cases the tests in `fuzz` run."""
    parser.addoption(
        "--fuzz", type=int, default=cases.DEFAULT, metavar="N", help=f"random cases in all (default: {cases.DEFAULT})"
    )
    parser.addoption("--part", metavar="K/N", help="run the part K = 0 ... N - 1 of N parts of the tests")
    parser.addoption(plain_python.OPTION, metavar="FILE", help="where a run without a compiler writes its results")


def pytest_configure(config):
    # a shell's background jobs ignore Ctrl-C, and so would the processes that the tests start and interrupt
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    cases.set_total(config.getoption("fuzz"))
    plain_python.configure(config)
    if config.getoption("markexpr") == "quick":
        config.pluginmanager.register(QuickFiles(), "quick files")


@pytest.hookimpl(tryfirst=True)  # before `plain_python` looks at the markers
def pytest_collection_modifyitems(config, items):
    """Order the files; the tests of a file stay in their order. Mark the examples that run in plain Python."""
    if config.getoption("part"):
        leave_part(config, items)
    for item in items:
        if has_slow_case(item):
            item.add_marker(pytest.mark.slow)
        if isinstance(item, pytest.DoctestItem) and item.name not in COMPILED_EXAMPLES:
            item.add_marker(plain_python.MARKER)
    names = [item.path.stem for item in items]
    ranks = [LONGEST.index(name) if name in LONGEST else len(LONGEST) for name in names]
    items[:] = [items[i] for i in sorted(range(len(items)), key=ranks.__getitem__)]


def has_slow_case(item):
    """Whether this is a case that `slow_cases` names, or that `fast_cases` does not name.

    The identifier of a case is one of the names, or has it between hyphens, at its start or at its end.
    """
    case = f"-{getattr(getattr(item, 'callspec', None), 'id', '')}-"
    slow = any(f"-{name}-" in case for mark in item.iter_markers("slow_cases") for name in mark.args)
    return slow or any(not any(f"-{name}-" in case for name in mark.args) for mark in item.iter_markers("fast_cases"))


def leave_part(config, items):
    """Deselect the tests of the other parts. The name of a test decides its part."""
    part, parts = map(int, config.getoption("part").split("/"))
    chosen = [item for item in items if zlib.crc32(item.nodeid.encode()) % parts == part]
    config.hook.pytest_deselected(items=set(items).difference(chosen))
    items[:] = chosen


@cache
def mechanism(name):
    """Build each mechanism once. Its warnings are checked elsewhere: some robots are published with defects."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MECHANISMS[name]()


@cache
def trees_with_states(chunk, count=TREES_PER_CHUNK):
    """Random trees, each with a batch of states and the magnitudes of the terms of its equations in them."""
    trees = enumerate(random_trees(chunk, count))
    states = [(model, random_state(model, (STATES_PER_TREE,), seed=i)) for i, model in trees]
    return [(model, state, Magnitudes(model, state)) for model, state in states]


QUICK = (pytest.mark.plain_python, pytest.mark.quick)


@pytest.fixture(
    params=[pytest.param("plain", marks=pytest.mark.plain_python), pytest.param("compiled", marks=pytest.mark.slow)]
)
def plain_or_slow(request):
    """Run a test in plain Python, and compiled with the slow tests, where it needs machine code that few tests need."""


@pytest.fixture(params=[*MECHANISMS, pytest.param("every_joint_tree", marks=QUICK, id="quick")])
def model(request):
    """Every mechanism in turn, and one with all types of joints in plain Python."""
    return mechanism(request.param)


@pytest.fixture(params=[*range(CHUNKS), pytest.param("quick", marks=QUICK)])
def trees(request):
    """Two hundred random trees in chunks, and the first few of them in plain Python."""
    return trees_with_states(0, QUICK_TREES) if request.param == "quick" else trees_with_states(request.param)
