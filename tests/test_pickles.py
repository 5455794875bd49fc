"""Pickles name classes, but not the modules in which they are defined now."""

import pickle
import pickletools
from functools import cache

import numpy as np
import pytest

import rbchain as rb
from rbchain.common.pickles import MODULES, class_of
from rbchain.model.keyframe import Keyframe

pytestmark = pytest.mark.plain_python


def modules_in(data):
    """The modules of rbchain that a pickle imports."""
    texts = [argument for _, argument, _ in pickletools.genops(data) if isinstance(argument, str)]
    return {text for text in texts if text == "rbchain" or text.startswith("rbchain.")}


def machine():
    builder = rb.ModelBuilder()
    builder.add_body(
        "arm",
        joint=rb.Revolute((0, 1, 0)),
        inertia=rb.Inertia(1.0, cg=(1, 0, 0)),
        passive=rb.PassiveForces(damping=0.1),
        visuals=[rb.Visual("sphere", (0.1,))],
    )
    builder.add_body("tip", parent="arm", joint=rb.Fixed(), placement=rb.Pose((1, 0, 0)))
    builder.add_body("slider", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(1.0))
    builder.add_constraint(rb.CouplerConstraint("coupler", "arm", "slider", ratio=0.1))
    builder.add_drive(rb.PID("arm", rb.Signal.sines(1.0, 2.0), kp=1.0))
    return builder.build().vary(mass=[[1.0, 1.0], [2.0, 1.0]])


@cache
def objects():
    """One object of each class. Made when a test needs them, because all commands import this file."""
    model = machine()
    floor = rb.SphereContact("tip", point=(0, 0, 0), radius=0.1, plane_point=(0, 0, -9.0), plane_normal=(0, 0, 1))
    motion = model.simulate(
        np.zeros((2, 2)), np.zeros((2, 2)), 0.01, method="moreau", step=0.01, forces=[floor], save_at=2
    )
    assert motion.impacts
    return {
        "varied model": model,
        "model": model.nominal,
        "trajectory": motion,
        "contact": floor,
        "units": rb.Units("mm-kg-s"),
        "keyframe": Keyframe([1.0], [0.0], {"motor": 0.5}),
        "event": rb.Event("arm", value=1.0, stop=True),
        "signal": 2.0 * rb.Signal.noise(1.0, (0.1, 10.0)) + rb.Signal.constant(1.0),
        "link": rb.io.dh.DHLink(1.0, 0.0, 0.0),
        "base parameters": model.nominal.base_parameters(),
    }


@pytest.mark.parametrize(
    "name",
    [
        *("varied model", "model", "trajectory", "contact", "units", "keyframe", "event", "signal", "link"),
        "base parameters",
    ],
)
def test_a_pickle_names_no_module_that_may_move(name):
    thing = objects()[name]
    data = pickle.dumps(thing)
    assert modules_in(data) == {"rbchain.common.pickles"}
    again = pickle.loads(data)
    assert type(again) is type(thing)
    assert repr(again) == repr(thing)


def test_classes_that_are_not_public_are_where_the_table_says():
    for name in MODULES:
        assert class_of(name).__name__ == name
        assert not hasattr(rb, name)


def test_a_subclass_of_a_user_is_pickled_as_python_does():
    assert type(pickle.loads(pickle.dumps(Slow("arm", 0.0, kp=1.0)))) is Slow


class Slow(rb.PID):
    """A class of a user."""
