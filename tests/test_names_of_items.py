"""Dicts that users index by names: the error for an unknown name lists the names that exist."""

import copy
import json
import pickle

import numpy as np
import pytest

import rbchain as rb
from rbchain.model.keyframe import Keyframe

pytestmark = pytest.mark.plain_python


def arm():
    builder = rb.ModelBuilder()
    sphere = rb.CollisionShape("sphere", (0.1,))
    inertia = rb.Inertia.rod(1.0, mass=1.0)
    builder.add_body(
        "arm", joint=rb.Revolute(), inertia=inertia, visuals=[rb.Visual("sphere", (0.1,))], collisions=[sphere]
    )
    builder.add_body("tip", parent="arm", joint=rb.Fixed())
    builder.add_drive(rb.PID("arm", rb.Input("motor"), kp=2.0, kd=0.1))
    model = builder.build()
    home = Keyframe([0.1], [0.0], {"motor": 0.2})
    return rb.Model(model.description.replaced({"keyframes": {"home": home}}))


def motion():
    return arm().simulate([0.1], duration=0.1, method="rk4", step=0.05, derivatives=("q", "kp"))


MAPPINGS = {
    "the model has no keyframe 'X'; its keyframes are ['home']": lambda: arm().keyframes,
    "the keyframe has no input 'X'; its inputs are ['motor']": lambda: arm().keyframes["home"].inputs,
    "the model has no input 'X'; its inputs are ['motor']": lambda: arm().inputs,
    "the stepper has no input 'X'; its inputs are ['motor']": lambda: arm().stepper([[0.0]], step=0.1).inputs,
    "the model has no fixed frame 'X'; its fixed frames are ['tip']": lambda: arm().fixed_frames,
    "the model has no body with visuals 'X'; its bodies with visuals are ['arm']": lambda: arm().visuals,
    "the model has no body with collision shapes 'X'; its bodies with collision shapes are ['arm']": (
        lambda: arm().collisions
    ),
    "the trajectory has no derivative 'X'; its derivatives are ['q', 'kp']": lambda: motion().derivatives,
}


@pytest.mark.parametrize("message", MAPPINGS)
def test_an_unknown_name_lists_the_names_that_exist(message):
    mapping = MAPPINGS[message]()
    with pytest.raises(rb.UnknownNameError) as found:
        mapping["X"]
    assert str(found.value).startswith(message)
    assert mapping.get("X") is None and "X" not in mapping


def test_an_unknown_name_suggests_a_similar_one():
    with pytest.raises(rb.UnknownNameError, match=r"did you mean home\?"):
        arm().keyframes["hme"]


def test_copies_and_pickles_have_the_same_items_and_the_same_error():
    given = motion()
    for derivatives in (copy.deepcopy(given).derivatives, pickle.loads(pickle.dumps(given)).derivatives):
        assert derivatives.keys() == given.derivatives.keys()
        assert all(np.array_equal(derivatives[name], x) for name, x in given.derivatives.items())
        with pytest.raises(rb.UnknownNameError, match="the trajectory has no derivative 'X'"):
            derivatives["X"]


def test_the_inputs_are_a_dict_that_json_and_comparisons_know():
    inputs = arm().inputs
    assert inputs == {"motor": 0.0}
    assert json.dumps(inputs) == '{"motor": 0.0}'
    assert repr(inputs) == "{'motor': 0.0}"


def test_results_of_a_fit_list_their_parameters():
    pendulum = rb.Model.serial_chain(1)
    measured = pendulum.simulate([0.5], duration=0.5, method="rk4", step=0.05, save_at=6)
    found = rb.fit(pendulum.replace(mass=[1.1]), measured, parameters=["mass"])
    for mapping in (found.values, found.standard_deviations, found.units):
        with pytest.raises(rb.UnknownNameError, match=r"the fit has no parameter 'mass'; its parameters are \['"):
            mapping["mass"]
