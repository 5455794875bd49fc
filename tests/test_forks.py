"""A process may fork while another of its threads computes."""

import os
import signal
import threading
from pathlib import Path

import pytest

import rbchain as rb
from rbchain.common.lock_free import cached_property

from .conftest import HANG_LIMIT


def exit_code_of_child(run):
    """Return the exit code of a forked child: 0 if it has run the function."""
    child = os.fork()
    if child == 0:
        signal.alarm(int(HANG_LIMIT))  # a child that waits for a lock waits for ever
        run()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_forked_during_the_computation_of_an_attribute_computes_it_itself():
    """`functools.cached_property` of Python 3.11 would leave it a lock that nobody releases."""
    computing, done = threading.Event(), threading.Event()

    class Slow:
        def __init__(self, waits):
            self.waits = waits

        @cached_property
        def value(self):
            if self.waits:
                computing.set()
                done.wait()
            return 1

    thread = threading.Thread(target=lambda: Slow(True).value)
    thread.start()
    computing.wait()
    code = exit_code_of_child(lambda: Slow(False).value)
    done.set()
    thread.join()
    assert code == 0


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_children_forked_while_models_are_built_can_build_models():
    stop = threading.Event()

    def build():
        rb.Model.serial_chain(3).vary(mass=[[1.0, 2.0, 3.0]]).position_labels  # noqa: B018

    def build_many():
        while not stop.is_set():
            build()

    build()  # Python cannot fork safely while another thread imports modules
    thread = threading.Thread(target=build_many)
    thread.start()
    codes = [exit_code_of_child(lambda: rb.Model.serial_chain(4).vary(damping=[1.0] * 4)) for _ in range(20)]
    stop.set()
    thread.join()
    assert codes == [0] * 20


def test_no_attribute_of_the_package_is_computed_under_a_lock():
    modules = [*Path(rb.__file__).parent.rglob("*.py")]
    assert len(modules) > 100
    for path in modules:
        imports = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("from functools")]
        assert not any("cached_property" in line for line in imports), path


def test_a_cached_attribute_is_computed_once():
    class Counter:
        """Counts how often it computes."""

        computed = 0

        @cached_property
        def value(self):
            """The value."""
            self.computed += 1
            return self.computed

    counter = Counter()
    assert (counter.value, counter.value, counter.computed) == (1, 1, 1)
    assert Counter.value.__doc__ == "The value."
