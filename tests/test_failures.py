"""A chain that cannot be computed is NaN, and its neighbours in the register keep their bits."""

import numpy as np
import pytest

import rbchain as rb

from .conftest import mechanism
from .mechanisms import random_inertia
from .quantities import ARGUMENTS, arrays_of, computed, in_quaternions, random_state, with_argument

POSITIONS = ("q", "q1")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("quantity", ARGUMENTS)
def test_a_chain_that_is_not_finite_is_nan_and_its_neighbours_keep_their_bits(quantity, bad):
    """Whichever argument it is in. What never depends on the state stays; a tree without fixed parts has none."""
    model = mechanism("every_joint_tree")
    state = random_state(model, (19,))
    whole = computed(model, quantity, state)
    for argument in arrays_of(quantity):
        if argument == "prescribed":
            continue
        for chain in (0, 10, 18):
            spoilt = getattr(state, argument).copy()
            spoilt[chain] = bad
            if argument in POSITIONS and np.isinf(bad):  # an infinite quaternion is refused, as one of another length
                keep = in_quaternions(model)
                spoilt[chain, keep] = getattr(state, argument)[chain, keep]
            found = computed(model, quantity, with_argument(state, argument, spoilt))
            assert any(not np.isfinite(x[chain]).all() for x in found), argument
            for x, y in zip(found, whole, strict=True):
                assert np.array_equal(np.delete(x, chain, 0), np.delete(y, chain, 0)), argument
                # what is left is what is the same for every state
                left = np.isfinite(x[chain])
                assert np.array_equal(x[chain][left], y[chain][left]), argument


@pytest.mark.parametrize(
    "quantity", ["forward_dynamics", "hybrid_dynamics", "mass_matrix_inverse", "solve_mass_matrix"]
)
def test_a_chain_that_fails_fails_as_a_whole(quantity):
    """Solutions of a system in which one number is none are none."""
    model = mechanism("every_joint_tree")
    state = random_state(model, (19,))
    for argument in arrays_of(quantity):
        spoilt = getattr(state, argument).copy()
        if argument in ("prescribed", "qdd", "wrenches"):
            continue
        spoilt[4, -1] = np.nan
        if quantity == "hybrid_dynamics":
            state.prescribed[4, -1] = False
        found = computed(model, quantity, with_argument(state, argument, spoilt))[0]
        assert np.isnan(found[4]).all(), argument


@pytest.mark.parametrize("quantity", ARGUMENTS)
def test_a_chain_alone_that_is_not_finite_is_nan(quantity):
    model = mechanism("every_joint_tree")
    state = random_state(model, ())
    for argument in arrays_of(quantity):
        if argument != "prescribed":
            bad = with_argument(state, argument, np.full_like(getattr(state, argument), np.nan))
            assert any(np.isnan(x).any() for x in computed(model, quantity, bad)), argument


@pytest.mark.parametrize("settings", [{}, {"method": "rk4", "step": 0.01}])
def test_a_quaternion_that_is_not_finite_ends_its_chain_alone(settings):
    model = mechanism("ball_chain")
    q, qd = model.random_state(np.random.default_rng(0), 10)
    good = model.simulate(q, qd, 0.1, **settings)
    q[7, 5] = np.nan
    motion = model.simulate(q, qd, 0.1, **settings)
    assert motion.status[7] == 2
    assert np.isnan(motion.q[7, 1]).all()
    assert np.array_equal(np.delete(motion.q, 7, 0), np.delete(good.q, 7, 0))


def test_a_free_body_without_inertia_is_nan_and_its_neighbours_are_not():
    builder = rb.ModelBuilder()
    builder.add_body("body", joint=rb.Free(), inertia=random_inertia(np.random.default_rng(0)))
    model = builder.build()
    chains = model.vary(mass=[[1.0], [0.0], [1.0]], inertia=np.array([np.eye(3), np.zeros((3, 3)), np.eye(3)])[:, None])
    state = random_state(chains, (3,))
    for quantity in ("forward_dynamics", "mass_matrix_inverse", "solve_mass_matrix"):
        found = computed(chains, quantity, state)[0]
        assert np.isnan(found[1]).all()
        assert np.isfinite(found[[0, 2]]).all()


@pytest.mark.parametrize(
    "joint", [rb.Free(), rb.Spherical(), rb.Composite([rb.Revolute((1, 0, 0)), rb.Revolute((0, 1, 0)), rb.Revolute()])]
)
@pytest.mark.parametrize("cg", [(0, 0, 0), (0.3, 0, 0)])
def test_a_thin_rod_that_may_turn_about_itself_is_singular_in_every_orientation(joint, cg):
    """As a sample beside a sound one: a model all of whose samples are such rods is refused."""
    builder = rb.ModelBuilder()
    builder.add_body("rod", joint=joint, inertia=rb.Inertia(2.0, cg, (1, 1, 1)))
    rod, ball = rb.Inertia.rod(1.0, mass=2.0, axis=(1, 0, 0)).inertia, np.eye(3)
    model = builder.build().vary(inertia=np.array([*[rod] * 40, ball])[:, None])
    q, qd = model.random_state(np.random.default_rng(0), 41)
    accelerations, inverses = model.forward_dynamics(q, qd, np.ones(model.nv)), model.mass_matrix_inverse(q)
    assert np.isnan(accelerations[:40]).all()
    assert np.isnan(inverses[:40]).all()
    assert np.isfinite(accelerations[40]).all()
    with pytest.raises(rb.ModelError, match=r"resists the motion of \['rod'\]"):
        model.of_chain(7).forward_dynamics(q[7], qd[7], np.ones(model.nv))
