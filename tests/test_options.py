"""`rb.options` sets options of the process, for good or until the end of a `with` block."""

import logging

import pytest

import rbchain as rb
from rbchain.common.progress import log

pytestmark = pytest.mark.plain_python


@pytest.fixture(autouse=True)
def restored():
    now = rb.options()
    with rb.options(
        threads=now.threads,
        progress=now.progress,
        boundscheck=now.boundscheck,
        control_derivative_errors=now.control_derivative_errors,
    ):
        yield


def values():
    now = rb.options()
    return now.threads, now.progress, now.boundscheck


def test_options_hold_for_good_or_until_the_end_of_a_block():
    rb.options(threads=3)
    assert values() == (3, True, False)
    with rb.options(threads=1, boundscheck=True) as inside:
        assert (inside.threads, inside.boundscheck) == (1, True)
        with rb.options(progress=False):
            assert values() == (1, False, True)
        assert values() == (1, True, True)
    assert values() == (3, True, False)


def test_a_block_restores_only_the_options_that_it_has_set():
    with rb.options(progress=False):
        rb.options(threads=5)
    assert values() == (5, True, False)


def test_the_number_of_threads_has_one_value():
    rb.options(threads=4)
    assert rb.get_num_threads() == 4
    rb.set_num_threads(2)
    assert rb.options().threads == 2


def test_messages_can_be_turned_off(caplog):
    with caplog.at_level(logging.INFO, "rbchain"), rb.options(progress=False):
        log("silent")
        rb.options(progress=True)
        log("heard")
    assert [record.message for record in caplog.records] == ["heard"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"threads": 0}, "threads is 0; expected a whole number of at least 1"),
        ({"progress": "no"}, "progress is 'no'; expected True or False"),
        ({"boundscheck": 1}, "boundscheck is 1; expected True or False"),
        ({"control_derivative_errors": 1}, "control_derivative_errors is 1; expected True or False"),
    ],
)
def test_other_values_are_refused_and_change_nothing(given, message):
    before = values()
    with pytest.raises(rb.ArgumentError, match=message):
        rb.options(**{"threads": 7} | given)
    assert values() == before


def test_wrong_calls_name_the_options():
    with pytest.raises(TypeError, match="options was called with 1 value by position; expected none"):
        rb.options(3)
    with pytest.raises(TypeError, match=r"use rb.options\(boundscheck=True\)"):
        rb.Model.serial_chain(1).simulate(duration=1.0, boundscheck=True)
    with pytest.raises(TypeError, match=r"use rb.options\(control_derivative_errors=\.\.\.\)"):
        rb.Model.serial_chain(1).simulate(duration=1.0, control_derivative_errors=False)


def test_all_options_are_in_the_text_of_the_object():
    assert repr(rb.options(threads=3)) == (
        "options(threads=3, progress=True, boundscheck=False, control_derivative_errors=True)"
    )
