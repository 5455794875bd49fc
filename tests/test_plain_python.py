"""Tests marked `plain_python` run without a compiler, all others with it, and none is lost on the way."""

from pathlib import Path

import numba
import pytest

from .conftest import LONGEST, QUICK_FILES
from .plain_python import DISABLED, run_in_child

THIS_FILE = "tests/test_plain_python.py"


@pytest.mark.plain_python
def test_a_marked_test_runs_without_a_compiler():
    assert numba.config.DISABLE_JIT


@pytest.mark.skipif(DISABLED, reason="NUMBA_DISABLE_JIT is set for all tests")
def test_an_unmarked_test_runs_with_the_compiler():
    assert not numba.config.DISABLE_JIT


@pytest.mark.parametrize(
    ("test", "output"),
    [
        ("test_that_does_not_exist", "not found"),
        ("test_an_unmarked_test_runs_with_the_compiler", "not marked plain_python"),
    ],
)
def test_a_test_that_the_child_process_does_not_run_fails(test, output, request):
    nodeid = f"{THIS_FILE}::{test}"
    assert output in run_in_child(request.config, [nodeid])[nodeid]


def test_the_files_with_quick_tests_are_listed(request):
    quick = {item.path.name for item in request.session.items if item.get_closest_marker("quick")}
    assert quick <= QUICK_FILES


def test_the_files_that_are_started_first_exist():
    assert set(LONGEST) <= {path.stem for path in Path(__file__).parent.rglob("test_*.py")}
