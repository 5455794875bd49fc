"""Arguments in compiled code: single states, lanes and their tails, in both precisions.

Each quantity is compiled four times here, as in other tests. `test_arguments` checks all quantities in plain Python.
"""

from hypothesis import given, strategies as st

from .calls import arguments_of, calls, check_angles, check_extreme_values, check_layouts, check_out
from .cases import cases

QUANTITIES = (
    *("forward_dynamics", "inverse_dynamics", "mass_matrix", "body_poses", "frame_poses", "energy", "power"),
    *("integrate", "difference"),
)
# A register has up to 16 lanes.
SEVERAL = [(2,), (7,), (8,), (9,), (16,), (17,), (33,), (3, 5)]


@cases(percent=5)
@given(calls(QUANTITIES, [(), (1,), *SEVERAL, (0,), (3, 0)]), st.data())
def test_memory_layout_and_type_change_no_bit(call, data):
    check_layouts(call, data)


@cases(percent=6, ends=("refused", "written"))
@given(calls(QUANTITIES, [(), (1,), *SEVERAL]), st.data())
def test_out_holds_the_result_or_is_refused(call, data):
    check_out(call, data)


@cases(percent=8, ends=("finite", "not finite"))
@given(calls(QUANTITIES, SEVERAL), st.data())
def test_extreme_values_do_not_change_other_samples(call, data):
    check_extreme_values(call, data.draw(arguments_of(call)), data)


@cases(percent=4)
@given(calls(("forward_dynamics", "mass_matrix", "body_poses"), [(1,), (7,), (9,)]), st.data())
def test_angles_of_any_size_are_reduced_to_one_turn(call, data):
    check_angles(call, data)
