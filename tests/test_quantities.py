"""Every quantity: judged by Pinocchio, held to the others by a thousand random trees, and the same however computed."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import rbchain as rb

from .conftest import mechanism
from .mechanisms import CHUNKS, EXAMPLES, MECHANISMS, random_inertia, random_rotation, random_trees
from .oracles import newton_euler, peers
from .quantities import (
    ARGUMENTS,
    EPS,
    ROUNDINGS,
    Magnitudes,
    along,
    assert_within,
    chains_of,
    computed,
    derivative,
    derivative_error,
    map_state,
    matrix_vector,
    norm,
    random_state,
    shapes,
    single,
)

FAR = 1e4  # m
# Of these rounding errors grow by the condition of the mass matrix.
SOLVED = ("forward_dynamics", "hybrid_dynamics", "mass_matrix_inverse", "solve_mass_matrix", "forward_dynamics_derivatives")


# --- against Pinocchio ------------------------------------------------------------------------------------------------

STATES = 50
# What differs from Pinocchio's by choice, or is compared elsewhere.
ELSEWHERE = ("coriolis_matrix", "forward_dynamics", "mass_matrix_inverse", "forward_dynamics_derivatives", "integrate")
PEERED = [q for q in ARGUMENTS if hasattr(peers.PinocchioPeer, q.removeprefix("relative_")) and q not in ELSEWHERE]


def from_peer(peer, model, name, state):
    """A quantity of one chain in Pinocchio, as a tuple; there bodies are numbers."""
    bodies = {"frame": model.body_names.index(state.frame), "watcher": model.body_names.index(state.watcher)}
    arguments = [bodies.get(argument, getattr(state, argument)) for argument in ARGUMENTS[name].split()]
    found = getattr(peer, name.removeprefix("relative_"))(*arguments)
    return found if isinstance(found, tuple) else (found,)


def assert_relative(found, expected, tolerance):
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= tolerance * np.abs(expected).max()


@pytest.mark.parametrize("quantity", PEERED)
def test_a_quantity_agrees_with_pinocchio(model, quantity):
    """To 1e-11 of the largest entry, in a batch and alone."""
    state, peer = random_state(model, (STATES,)), peers.to_pinocchio(model)
    batch = computed(model, quantity, state)
    for s in range(STATES):
        chain = chains_of(state, s)
        alone = computed(model, quantity, chain) if s < 3 else (None,) * len(batch)
        expected = from_peer(peer, model, quantity, chain)
        for one, many, theirs in zip(alone, batch, expected, strict=True):
            assert_relative(many[s], theirs, 1e-11)
            if one is not None:
                assert_relative(one, theirs, 1e-11)


def test_the_coriolis_matrix_gives_pinocchios_coriolis_forces(model):
    """The matrix itself is another: many have the same product with qd."""
    state, peer = random_state(model, (STATES,)), peers.to_pinocchio(model)
    found = matrix_vector(model.coriolis_matrix(state.q, state.qd), state.qd)
    for s in range(STATES):
        chain = chains_of(state, s)
        expected = peer.coriolis_force(chain.q, chain.qd)
        assert_relative(found[s], expected, 1e-11)
        assert_relative(model.coriolis_matrix(chain.q, chain.qd) @ chain.qd, expected, 1e-11)


def test_the_inverse_of_the_mass_matrix_agrees_with_pinocchios(model):
    """To the condition of the matrix: both engines may err by n eps times that (Higham 2002, theorem 14.1)."""
    state, peer = random_state(model, (STATES,)), peers.to_pinocchio(model)
    inverse, solved = model.mass_matrix_inverse(state.q), model.solve_mass_matrix(state.q, state.tau)
    for s in range(STATES):
        q, tau = state.q[s], state.tau[s]
        expected = peer.mass_matrix_inverse(q)
        allowed = 2 * model.nv * EPS * np.linalg.cond(peer.mass_matrix(q)) * np.linalg.norm(expected, 2)
        assert np.abs(inverse[s] - expected).max() <= allowed
        assert norm(solved[s] - expected @ tau) <= allowed * norm(tau)
        if s < 3:
            assert np.abs(model.mass_matrix_inverse(q) - expected).max() <= allowed
            assert norm(model.solve_mass_matrix(q, tau) - expected @ tau) <= allowed * norm(tau)


# --- among each other, on a thousand random trees ---------------------------------------------------------------------


@pytest.fixture(params=range(CHUNKS))
def trees(request):
    """Random trees, each with a batch of states and what the terms of its equations amount to."""
    return trees_with_states(request.param)


def trees_with_states(chunk, known={}):  # noqa: B006 : made once for all tests
    if chunk not in known:
        known[chunk] = [(model, state, Magnitudes(model, state)) for model, state in states_of(random_trees(chunk))]
    return known[chunk]
