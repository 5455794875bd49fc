"""Arguments of every quantity: layouts, types, overlap, masks, and numbers that are not finite or extreme."""

import pytest
from hypothesis import given, strategies as st

from ..quantities import ARGUMENTS
from .calls import (
    arguments_of,
    calls,
    check_layouts,
    check_out,
    check_refusal,
)
from .cases import cases

pytestmark = [
    pytest.mark.plain_python,
    pytest.mark.filterwarnings("error::RuntimeWarning", r"ignore::RuntimeWarning:rbchain\.core"),
]
# Compiled code does not warn of overflow; NumPy's numbers, which replace it here, do.
BATCHES = [(), (1,), (3,), (2, 2), (1, 1, 2)]
ANY_CALL = calls(list(ARGUMENTS), BATCHES)
OF_ANY_NUMBER = calls(list(ARGUMENTS), [*BATCHES, (0,), (2, 0)])


@cases(percent=10)
@given(OF_ANY_NUMBER, st.data())
def test_memory_layout_and_type_change_no_bit(call, data):
    check_layouts(call, data)


@cases(percent=10)
@given(ANY_CALL, st.data())
def test_arguments_that_are_no_real_arrays_are_refused_by_name(call, data):
    check_refusal(call, data.draw(arguments_of(call)), data)


@cases(percent=10, ends=("refused", "written"))
@given(ANY_CALL, st.data())
def test_out_holds_the_result_or_is_refused(call, data):
    check_out(call, data)
