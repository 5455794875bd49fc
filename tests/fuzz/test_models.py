"""Random trees, their parameters, and the numbers passed to a builder."""

import inspect
import re
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

import rbchain as rb
from rbchain.model.declared_constraint import COMPLIANCES

from ..quantities import Magnitudes, assert_within, computed, random_state
from ..test_native import same
from ..test_numbers_that_are_refused import ENTRIES, TAKEN
from .cases import cases, ended
from .layouts import LAYOUTS, not_real_arrays
from .trees import (
    Units,
    arguments_of_bodies,
    built,
    in_units,
    model_and_words,
    result_in_units,
    state_in_units,
    trees,
)

pytestmark = [
    pytest.mark.plain_python,
    pytest.mark.filterwarnings("error::RuntimeWarning", r"ignore::RuntimeWarning:rbchain\.core"),
]
IN_UNITS = (
    *("forward_dynamics", "inverse_dynamics", "gravity_forces", "mass_matrix", "mass_matrix_inverse", "energy"),
    *("power", "momentum", "joint_reactions", "center_of_mass", "body_velocities"),
)


@cases(percent=10, ends=("refused", "computed"))
@given(trees())
def test_a_tree_satisfies_its_dynamics_or_names_the_bodies_without_inertia(tree):
    model, words = built(tree)
    state = random_state(model, (2,), tree.seed)
    q, qd, tau, wrenches = state.q, state.qd, state.tau, state.wrenches
    eigenvalues = np.linalg.eigvalsh(model.mass_matrix(q))
    assert np.isfinite(model.inverse_dynamics(q, qd, state.qdd, wrenches)).all()
    if model.bodies_without_inertia:
        assert (eigenvalues[:, 0] <= 1e-12 * eigenvalues[:, -1]).all()
        with pytest.raises(rb.ModelError) as refused:
            model.forward_dynamics(q, qd, tau, wrenches)
        assert all(
            any(repr(name) in line for line in (str(refused.value), *words)) for name in model.bodies_without_inertia
        )
        ended("refused")
        return
    assert not words
    sizes = Magnitudes(model, state)
    given = model.inverse_dynamics(q, qd, state.qdd, wrenches)
    found = model.forward_dynamics(q, qd, given, wrenches)
    assert_within(found, state.qdd, 2 * sizes.rounding * sizes.inverse * sizes.force)
    kinetic, _ = model.energy(q, qd)
    expected = np.einsum("...i,...ij,...j", qd, model.mass_matrix(q), qd) / 2
    assert_within(kinetic, expected, 2 * sizes.rounding * sizes.energy)
    state.qdd = model.forward_dynamics(q, qd, tau, wrenches)
    sizes = Magnitudes(model, state)
    assert_within(model.force_balance_residual(q, qd, tau, wrenches), 0.0, 2 * sizes.rounding * sizes.force)
    ended("computed")


UNITS = st.builds(Units, *(st.integers(-size, size) for size in (60, 40, 40)))


@cases(percent=5, ends=("computed",))
@given(trees(), UNITS, st.sampled_from(IN_UNITS))
def test_a_change_of_units_by_powers_of_two_changes_no_bit(tree, units, quantity):
    (model, words), (other, same_words) = built(tree), model_and_words(in_units(tree, units))
    assert words == same_words
    if words and quantity in ("forward_dynamics", "mass_matrix_inverse"):
        return
    state = random_state(model, (2,), tree.seed)
    expected = result_in_units(model, quantity, computed(model, quantity, state), units)
    found = computed(other, quantity, state_in_units(model, state, units))
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_array_equal(x, y)
    ended("computed")


# --- what enters a model ----------------------------------------------------------------------------------------------

NUMBERS = (0.0, -0.0, -1.0, 1e-320, 1e300, -1e300, np.nan, np.inf, -np.inf, 10**400, -(10**30))
#: Wrong shapes among the invalid arrays: some functions accept arrays of any shape.
SHAPES = {"one number", "one number too many", "no numbers"}
#: These may be infinite, or are checked by the builder, which knows the body.
MAY_BE_INFINITE = r"^Inertia|JointLimits|_limit$|stop_(lower|upper)|PID: limit|Signal: end|Signal: a time|Event: value"


def refusal(call, given):
    """The words of the error, or None."""
    try:
        call(given)
    except rb.RbchainError as error:
        return str(error)


@cases(percent=8, ends=("another layout", "refused", "taken"))
@given(st.sampled_from(sorted(set(ENTRIES) - {"UserForces: parameters"})), st.data())
def test_numbers_are_accepted_in_any_layout_or_refused_by_name(entry, data):
    """Given in another memory layout, as another number, or as something that is not an array of numbers."""
    call, name, good = ENTRIES[entry]
    good = np.asarray(good, float)
    kind = data.draw(st.sampled_from(("layout", "number", "no array")))
    if kind == "layout" and good.ndim:
        layout = LAYOUTS[data.draw(st.sampled_from(sorted(LAYOUTS)))]
        assert refusal(call, layout(good)) == refusal(call, good)
        ended("another layout")
        return
    if kind == "no array":
        wrong = not_real_arrays(np.atleast_1d(good))
        taken = {words for words, of in (("nothing", "None"), ("text", "text")) if entry in TAKEN[of]}
        given = wrong[data.draw(st.sampled_from(sorted(set(wrong) - SHAPES - taken)))]
    else:
        numbers = good.astype(object)
        numbers.flat[data.draw(st.integers(0, good.size - 1))] = data.draw(st.sampled_from(NUMBERS))
        given = numbers.tolist()
    words = refusal(call, given)
    if words is not None:
        # or its body or joint, if two numbers contradict each other
        assert name.split()[0] in words or "'link1'" in words
        ended("refused")
    else:
        ended("taken")
        assert kind != "no array"
        assert np.isfinite(np.array(given, float)).all() or re.search(MAY_BE_INFINITE, entry)


ADDED = sorted(set(inspect.signature(rb.ModelBuilder.add_body).parameters) - {"self"})
JUNK = {
    **{repr(x): x for x in (None, 0, -1, np.nan, "text", "", b"", [], {}, (), 1j, True, 10**400, (1, 2))},
    **{
        f"a {type(x).__name__}": x
        for x in (np.zeros((2, 2)), rb.Pose(), rb.Inertia(1.0), rb.Free(), rb.PassiveForces())
    },
    "a class": rb.Revolute,
    "a function": print,
    "a list of lists": [[]],
    "a list of a shape": [rb.CollisionShape("capsule", (0.1, 0.3), pose=rb.Pose((0, 0.2, 0)))],
    "a name with a quote": "a'b",
    "a name with every kind of white space": " \t\n\u2028",
    "a name that UTF-8 does not have": "\ud800",
}


@cases(percent=10, ends=("refused", "saved"))
@given(trees(most=3), st.sampled_from(ADDED), st.sampled_from(sorted(JUNK)), st.data())
def test_arguments_of_a_body_are_refused_or_unchanged_by_a_file(tree, argument, what, data):
    """rbchain's own file format keeps every bit, so that a misread value would be detected."""
    builder = rb.ModelBuilder(fluid_density=1000.0 * tree.in_water)
    given = arguments_of_bodies(tree)
    i = data.draw(st.integers(0, len(given) - 1), label="body")
    given[i][argument] = JUNK[what]
    try:
        for arguments in given:
            builder.add_body(**arguments)
        model, _ = model_and_words(builder)
    except rb.ModelError as error:
        assert argument in str(error) or repr(given[i]["name"]) in str(error) or repr(JUNK[what]) in str(error), error
        ended("refused")
        return
    check_file(model, what)


def check_file(model, what):
    """Check that a file keeps every bit of a model that contains this junk."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of bodies without inertia
        path = Path(folder) / "model.toml"
        try:
            rb.save(model, path)
        except rb.FileFormatError:
            assert what == "a name that UTF-8 does not have"
            return
        found = rb.load(path)
    same(found.description, model.description)
    ended("saved")


JOINED = {"name": "joined", "frame_a": None, "frame_b": "b"}
GEARED = {"name": "joined", "joint": "a", "other": "b", "ratio": 2.0}
SOFT = {"compliance": 1e-3, "relaxation_time": 0.1}
SOFT_JOINTS = SOFT | {"angular_compliance": 1e-2}
#: Of each kind of constraint: its class, its arguments, and other arguments of `add_constraint`.
CONSTRAINTS = {
    "ball": (rb.BallConstraint, JOINED, SOFT),
    "hinge": (rb.HingeConstraint, JOINED, SOFT_JOINTS),
    "weld": (rb.WeldConstraint, JOINED, SOFT_JOINTS),
    "distance": (rb.DistanceConstraint, JOINED | {"point_a": (1, 0, 0), "point_b": (0, 1, 0), "length": 1.0}, SOFT),
    "coupler": (rb.CouplerConstraint, GEARED, {}),
}


@pytest.mark.parametrize("is_compliant", [False, True], ids=["rigid", "compliant"])
@pytest.mark.parametrize("kind", CONSTRAINTS)
def test_arguments_of_a_constraint_are_refused_or_unchanged_by_a_file(kind, is_compliant):
    """All of them, because few of these values are valid: a random choice may miss every valid one."""
    made, given, more = CONSTRAINTS[kind]
    more = more if is_compliant else {}
    refused, saved = 0, 0
    for argument in {*inspect.signature(made).parameters, *COMPLIANCES}:
        for what, value in JUNK.items():
            builder = rb.ModelBuilder()
            for name in ("a", "b"):
                builder.add_body(name, joint=rb.Revolute(), inertia=rb.Inertia(1.0, inertia=(1, 1, 1)))
            junk = {argument: value}
            try:
                if argument in COMPLIANCES:
                    builder.add_constraint(made(**given), **more | junk)
                else:
                    builder.add_constraint(made(**given | junk), **more)
                model, _ = model_and_words(builder)
            except rb.ModelError as error:
                assert argument in str(error) or "'joined'" in str(error) or repr(value) in str(error), error
                refused += 1
            else:
                check_file(model, what)
                saved += 1
    assert refused
    assert saved
