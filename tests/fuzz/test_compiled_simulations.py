"""Simulations in compiled lanes: statuses, other samples, energy. Two steppers are compiled, as in other tests."""

from types import SimpleNamespace

import numpy as np
from hypothesis import assume, given, strategies as st

import rbchain as rb

from ..quantities import Magnitudes
from .cases import cases
from .motions import Motion, check_a_hazard, check_ends, motions
from .trees import built, trees

DURATION = 0.3


@st.composite
def models(draw, most=4):
    """Strategy for models in air without singular mass matrices."""
    model, words = built(draw(trees(most=most, dry=True)))
    assume(not words)
    return model


@cases(percent=6)
@given(models(), st.sampled_from([(2,), (7,), (9,), (17,), (3, 5)]), st.data())
def test_every_sample_ends_with_a_status_and_does_not_change_others(model, batch, data):
    clean = motions(data.draw, model, batch, DURATION, steps=500)
    if not (clean.settings["drives"] or clean.settings["forces"] or clean.settings["events"]):
        clean.settings["events"] = [never_of(model)]  # so that the steppers are compiled for one type of arguments only
    check_a_hazard(data.draw, clean, batch)


def never_of(model):
    """An event that never occurs."""
    return rb.Event(model.joint_names[0], value=1e300, quantity="velocity", dof=0, stop=True)


@cases(percent=4)
@given(trees(most=4, dry=True), st.integers(-3, 2), st.sampled_from([1e-4, 1e-7, 1e-10]), st.booleans())
def test_a_tree_without_drives_or_friction_conserves_energy(tree, speed, rtol, hangs):
    """The error allowed in the energy is the sum of the errors that the step control allows in each step."""
    bodies = tuple(body._replace(has_passive_forces=False) for body in tree.bodies)
    model, words = built(tree._replace(bodies=bodies))
    assume(not words)
    q, qd = model.random_state(tree.seed, (9,))
    settings = {"duration": DURATION, "rtol": rtol, "atol": 1e-3 * rtol, "max_steps": 5000, "save_at": 7}
    motion = Motion(model, q, qd * 10.0**speed * hangs, settings | {"events": [never_of(model)], "drives": []})
    found = motion.simulate()
    check_ends(motion, found)
    nothing = np.zeros((*found.qd.shape[:-1], model.n_bodies, 6))
    done = np.isfinite(found.q).all((-2, -1))
    state = SimpleNamespace(q=found.q[done], qd=found.qd[done], qdd=0 * found.qd[done], wrenches=nothing[done])
    sizes = Magnitudes(model, state)
    y = np.concatenate([state.q, state.qd], -1)
    # the largest error of one step in one entry, and the effect of an error of 1 in every entry on the energy
    of_step = np.sqrt(y.shape[-1]) * rtol * (1e-3 + np.abs(y).max(-1))
    of_energy = 2.0 * y.shape[-1] * (sizes.force + sizes.inertia * sizes.rate)
    steps = found.steps[done][:, None]
    allowed = (steps * of_step * of_energy).max(-1) + (steps * sizes.rounding * sizes.energy).max(-1)
    energy = sum(model.energy(state.q, state.qd))
    assert (np.abs(energy - energy[:, :1]).max(-1, initial=0.0) <= allowed).all()
