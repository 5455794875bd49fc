"""The table of the integration methods: what it says is so, and everything that lists methods follows from it."""

from typing import get_args

import numpy as np
import pytest

import rbchain as rb
from rbchain.core.methods.tableaus import Tableau
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


@pytest.mark.plain_python
def test_an_explicit_method_is_its_tableau_even_if_its_last_stages_are_at_different_times(monkeypatch):
    """Bogacki and Shampine (1989): with steps of one length, half the length divides the error by 2^3."""
    bogacki_shampine = Tableau(
        A=np.array([[0, 0, 0, 0], [1 / 2, 0, 0, 0], [0, 3 / 4, 0, 0], [2 / 9, 1 / 3, 4 / 9, 0]]),
        c=np.array([0, 1 / 2, 3 / 4, 1]),
        error=np.array([-5 / 72, 1 / 12, 1 / 9, -1 / 8]),
        dense=np.zeros(4),
        order=3,
        stability_limit=np.inf,
    )
    exact = CHAIN.simulate(*STATE, 0.4, save_at=2, rtol=1e-12, atol=1e-12)
    stiff = CHAIN.replace(stiffness=[1e4, 1e4], damping=[1e2, 1e2])
    monkeypatch.setitem(TABLEAUS, "rk45", bogacki_shampine)
    errors = []
    for step in (0.02, 0.01):
        motion = CHAIN.simulate(*STATE, 0.4, save_at=2, rtol=0.1, atol=1.0, max_step=step)
        assert motion.steps[0] == pytest.approx(0.4 / step, abs=6)  # the first steps are shorter
        errors.append(np.abs(motion.q - exact.q)[0, -1].max())
    assert errors[0] / errors[1] == pytest.approx(8.0, rel=0.2)
    assert not stiff.simulate(*STATE, 0.05, save_at=2, rtol=1e-3, atol=1e-3).is_stiff.any()
