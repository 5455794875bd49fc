"""The table of the integration methods: what it says is so, and everything that lists methods follows from it."""

from typing import get_args

import numpy as np
import pytest

import rbchain as rb
from rbchain.simulate.methods import METHODS, MethodName, table_for_documentation
from rbchain.simulate.tableaus import TABLEAUS

CHAIN = rb.Model.serial_chain(2)
STATE = [[0.1, 0.2]], [[0.0, 0.0]]


FEATURES = {
    "has_contacts": {"forces": [rb.DryFriction("link1", kinetic=0.1)]},
    "has_events": {"events": [rb.Event("link1", value=1.0, stop=True)]},
    "has_sensitivities": {"derivatives": ["mass"]},
}


def settings(method):
    return {"method": method.name} | ({} if method.is_adaptive else {"step": 0.05})


def test_the_names_for_type_checkers_and_the_coefficients_are_those_of_the_table():
    assert get_args(MethodName) == tuple(METHODS)
    assert {*TABLEAUS, "radau"} == set(METHODS)  # the coefficients of radau depend on the tolerances
    for name, method in METHODS.items():
        assert method.name == name


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("name", METHODS)
def test_a_feature_that_a_method_does_not_support_is_refused_by_name(name, feature):
    method = METHODS[name]
    if getattr(method, feature):
        assert CHAIN.simulate(
            np.zeros((0, 2)), np.zeros((0, 2)), 0.1, save_at=2, **settings(method), **FEATURES[feature]
        ).status.shape == (0,)
        return
    with pytest.raises(rb.ArgumentError, match=f'"{name}"'):
        CHAIN.simulate(*STATE, 0.1, save_at=2, **settings(method), **FEATURES[feature])


@pytest.mark.parametrize("name", METHODS)
def test_a_setting_of_the_other_kind_of_steps_is_refused_by_name(name):
    wrong = {"step": 0.1} if METHODS[name].is_adaptive else {"rtol": 1e-6, "step": 0.1}
    with pytest.raises(rb.ArgumentError, match=f'method "{name}"'):
        CHAIN.simulate(*STATE, 0.1, method=name, save_at=2, **wrong)


def test_the_table_of_the_documentation_has_a_row_for_each_method():
    head, line, *rows = table_for_documentation().splitlines()
    assert len(rows) == len(METHODS)
    assert {row.count("|") for row in (head, line, *rows)} == {head.count("|")}
    for row, method in zip(rows, METHODS.values(), strict=True):
        assert f'"{method.name}"' in row and method.title in row
