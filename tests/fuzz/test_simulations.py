"""Simulations of a few steps, in water and out of it, in both precisions, with samples that differ."""

import dataclasses

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

import rbchain as rb

from .cases import cases, ended
from .motions import HAZARDS, check_a_hazard, check_ends, check_events, check_same, motion_under, motions
from .trees import builder_of, built, closed, trees

pytestmark = [
    pytest.mark.plain_python,
    pytest.mark.filterwarnings("error::RuntimeWarning", r"ignore::RuntimeWarning:rbchain\.(core|drivers)"),
]
DURATION = 0.02


@st.composite
def models(draw):
    """Strategy for models of up to three bodies without singular mass matrices."""
    model, words = built(draw(trees(most=3)))
    assume(not words)
    return model


@pytest.mark.slow
@cases(percent=5)
@given(models(), st.sampled_from([(), (2,), (1, 3)]), st.sampled_from([np.float64, np.float32]), st.data())
def test_every_sample_ends_with_a_status_and_does_not_change_others(model, batch, dtype, data):
    if batch and data.draw(st.booleans(), label="samples differ"):
        model = model.vary(mass=model.mass * np.random.default_rng(0).uniform(0.5, 2.0, (*batch, model.n_bodies)))
    clean = motions(data.draw, model, batch, DURATION, steps=20, dtype=dtype, springs=True)
    spoilt, found = check_a_hazard(data.draw, clean, batch)
    if not found.success:
        with pytest.raises(rb.SimulationError):
            spoilt._replace(settings=spoilt.settings | {"on_failure": "raise"}).simulate()


CONSTRAINTS = (
    *("ball", "hinge", "weld", "distance", "coupler"),
    *("compliant ball", "compliant hinge", "compliant weld", "compliant distance"),
)


@st.composite
def closed_chains(draw):
    """Strategy for models of up to four bodies with constraints, and positions that satisfy these."""
    tree = draw(trees(most=4, dry=True))
    model, words = built(tree)
    assume(not words)
    q, _ = model.random_state(draw(st.integers(0, 99), label="state"))
    kinds = draw(st.lists(st.sampled_from(CONSTRAINTS), min_size=1, max_size=2))
    model = closed(builder_of(tree), q, kinds, tree.seed)
    assume(model.constraint_names)
    return model, q


@cases(percent=1)
@given(closed_chains(), st.sampled_from([(2,), (1, 3)]), st.sampled_from([np.float64, np.float32]), st.data())
def test_every_sample_of_a_closed_chain_ends_with_a_status_and_does_not_change_others(chain, batch, dtype, data):
    """Assembled states are simulated; where constraints depend on each other, accelerations satisfy them, too."""
    model, q = chain
    velocities = np.random.default_rng(0).normal(size=(*batch, model.nv))
    if model.kernel_model.is_rigid_row.any():
        velocities = model.assemble_velocities(q, velocities)
    state = np.broadcast_to(q, (*batch, model.nq)), velocities
    clean = motion_under(data.draw, model, state, [], DURATION, 20, dtype, springs=True)
    _, found = check_a_hazard(data.draw, clean, batch)
    moved = found.q[np.isfinite(found.q).all(-1)]
    allowed = (1e-10 if dtype is np.float64 else 2e-3) * (1 + np.abs(moved).max(initial=0.0))
    residual = model.constraint_residual(moved.astype(np.float64))
    assert (np.abs(residual[..., model.kernel_model.is_rigid_row]) <= allowed).all()


NUMBERS = (
    np.nan,
    np.inf,
    -np.inf,
    -1.0,
    0.0,
    1e300,
    1e-300,
    5e-324,
    10**400,
    10**20,
    1j,
    None,
    "ten",
    True,
    [],
    [1, 2],
)
#: Valid values, because few of the numbers above are valid for any setting.
VALID = {"duration": DURATION, "save_at": 3, "tau": 0.0, "on_failure": "ignore"}
SETTINGS = ("duration", "save_at", "step", "rtol", "atol", "max_steps", "method", "tau", "on_failure")


@cases(percent=2, ends=("refused", "simulated"))
@given(models(), st.sampled_from([(), (2,)]), st.sampled_from(SETTINGS), st.sampled_from(NUMBERS), st.data())
def test_a_setting_is_refused_by_name_or_every_sample_ends_with_a_status(model, batch, name, number, data):
    motion = motions(data.draw, model, batch, DURATION, steps=20)
    if name in VALID and data.draw(st.booleans(), label="valid"):
        number = VALID[name]
    motion = motion._replace(settings=motion.settings | {name: number})
    try:
        found = motion.simulate()
    except rb.ArgumentError as error:
        assert name in str(error) or name == "duration"  # the other settings may not fit a valid duration
        ended("refused")
        return
    check_ends(motion, found)
    check_events(found)
    ended("simulated")


def with_a_number(draw, what, acting):
    """Replace one number of one of these drives, forces or events."""
    i = draw(st.integers(0, len(acting) - 1), label=f"which of the {what}")
    fields = [field.name for field in dataclasses.fields(acting[i]) if field.name not in ("joint", "frame", "function")]
    number = draw(st.sampled_from(NUMBERS), label="number")
    if draw(st.booleans(), label="valid"):  # most of the numbers above are refused in most of the fields
        fields, number = [field.name for field in acting[i].numeric_fields], 0.5
    name = draw(st.sampled_from(fields), label="field")
    return [*acting[:i], dataclasses.replace(acting[i], **{name: number}), *acting[i + 1 :]]


@cases(percent=2, ends=("refused", "simulated"))
@given(models(), st.sampled_from([(), (2,)]), st.sampled_from(("drives", "forces", "events")), st.data())
def test_numbers_of_actions_are_refused_or_every_sample_ends_with_a_status(model, batch, what, data):
    motion = motions(data.draw, model, batch, DURATION, steps=20, springs=True)
    assume(motion.settings[what])
    try:
        changed = with_a_number(data.draw, what, motion.settings[what])
        motion = motion._replace(settings=motion.settings | {what: changed})
        found = motion.simulate()
    except rb.RbchainError as error:
        assert str(error).strip()
        ended("refused")
        return
    check_ends(motion, found)
    check_events(found)
    ended("simulated")


VARIED = ("mass", "cg", "inertia", "placement_translation", "axis", "rotor_inertia", "gear_ratio", "gravity", "damping")


@cases(percent=2, ends=("refused", "simulated"))
@given(models(), st.sampled_from(VARIED), st.sampled_from(HAZARDS), st.integers(0, 2), st.data())
def test_a_parameter_of_one_sample_is_refused_or_does_not_change_others(model, name, number, sample, data):
    values = np.repeat(getattr(model, name)[None], 3, 0)
    entry = tuple(data.draw(st.integers(0, size - 1), label="entry") for size in values.shape[1:])
    changed = values.copy()
    changed[(sample, *entry)] = number
    if name == "inertia":
        changed[(sample, entry[0], entry[2], entry[1])] = number
    try:
        spoilt, sound = model.vary(**{name: changed}), model.vary(**{name: values})
        motion = motions(data.draw, sound, (3,), DURATION, steps=20)
        expected, found = motion.simulate(), motion._replace(model=spoilt).simulate()
    except rb.ModelError as error:
        assert name in str(error) or "beyond the range" in str(error) or "no mass, inertia or rotor" in str(error)
        ended("refused")
        return
    check_ends(motion, found)
    others = np.arange(3) != sample
    check_same(found, expected, others)
    ended("simulated")
