"""Single states are checked in compiled code; results and errors are those of the checks in Python."""

import copy
import dataclasses
import pickle
import sys
import threading

import numba
import numpy as np
import pytest

import rbchain as rb
from rbchain.compiling.levels import PLAIN_NUMBA
from rbchain.drivers import dynamics
from rbchain.model.pose import computed_pose

from .mechanisms import random_tree
from .test_forks import exit_code_of_child

COMPILED = not (numba.config.DISABLE_JIT or PLAIN_NUMBA)
KINDS = ["free", "revolute", "spherical", "prismatic"]
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning"),  # in plain Python
    pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning"),
]


class Subclass(np.ndarray):
    pass


@pytest.fixture(scope="module")
def model():
    """A model with quaternions whose functions have been called, so that later calls take the fast path."""
    model = random_tree(4, range(-1, 3), KINDS)
    for _ in range(2):
        model.forward_dynamics(*state_of(model))
        model.mass_matrix(state_of(model)[0])
    return model


def state_of(model, seed=0):
    rng = np.random.default_rng(seed)
    return *model.random_state(rng), rng.normal(size=model.nv)


def general(model, q, qd, tau):
    """The same results with checks in Python, which `out` requires."""
    return model.forward_dynamics(q, qd, tau, out=np.empty(model.nv))


@pytest.fixture
def checks_in_python(monkeypatch, model):
    """The number of states that Python has checked, in a list."""
    counts, check = [0], type(model.kernel_model.state_arguments).check

    def counted(self, *arguments, **settings):
        counts[0] += 1
        return check(self, *arguments, **settings)

    monkeypatch.setattr(type(model.kernel_model.state_arguments), "check", counted)
    return counts


@pytest.mark.skipif(not COMPILED, reason="without compiled code, Python checks all states")
def test_a_valid_state_is_checked_in_compiled_code_only(model, checks_in_python):
    q, qd, tau = state_of(model)
    model.forward_dynamics(q, qd, tau)
    model.mass_matrix(q)
    assert checks_in_python == [0]


@pytest.mark.parametrize("seed", range(20))
def test_results_equal_those_with_checks_in_python_to_the_bit(model, seed):
    q, qd, tau = state_of(model, seed)
    assert model.forward_dynamics(q, qd, tau).tobytes() == general(model, q, qd, tau).tobytes()
    H = model.mass_matrix(q)
    assert H.shape == (model.nv, model.nv) and H.flags.carray
    assert H.tobytes() == model.mass_matrix(q, out=np.empty((model.nv, model.nv))).tobytes()


def unaligned(x):
    memory = np.zeros(x.nbytes + 1, np.uint8)[1:].view(np.float64)
    memory[:] = x
    return memory


def read_only(x):
    found = x.copy()
    found.flags.writeable = False
    return found


def big_endian(x):
    return x.astype(">f8")


LAYOUTS = {
    "reversed": lambda x: x[::-1].copy()[::-1],
    "with gaps": lambda x: np.repeat(x, 2)[::2],
    "unaligned": unaligned,
    "read-only": read_only,
    "big-endian": big_endian,
    "subclass": lambda x: x.view(Subclass),
    "list": lambda x: x.tolist(),
    "pickled": lambda x: pickle.loads(pickle.dumps(x)),
    "with dtype of its own": lambda x: x.astype(np.dtype(np.float64, metadata={"unit": "rad"})),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("argument", range(3))
def test_states_of_other_layouts_give_the_same_results(model, layout, argument):
    state = list(state_of(model))
    expected = model.forward_dynamics(*state)
    state[argument] = LAYOUTS[layout](state[argument])
    assert model.forward_dynamics(*state).tobytes() == expected.tobytes()


def one_longer(x):
    return np.append(x, 0.0)


INVALID = {
    "longer": (one_longer, "shape"),
    "shorter": (lambda x: x[:-1].copy(), "shape"),
    "empty": (lambda x: np.empty(0), "shape"),
    "no axis": (lambda x: np.array(1.0), "shape"),
    "complex": (lambda x: x.astype(complex), "complex128"),
    "bool": (lambda x: x.astype(bool), "bool"),
    "masked": (lambda x: np.ma.array(x), "masked"),
    "text": (lambda x: "state", "state"),
    "None": (lambda x: None, "None|object"),
}


@pytest.mark.parametrize("invalid", INVALID)
@pytest.mark.parametrize("argument", range(3))
def test_invalid_states_are_refused_with_the_name_of_the_argument(model, invalid, argument):
    change, words = INVALID[invalid]
    if (invalid, argument) == ("no axis", 2):
        change = lambda x: np.array(np.nan + 1j)  # noqa: E731 (one real number is the force of all joints)
        words = "complex128"
    state = list(state_of(model))
    state[argument] = change(state[argument])
    with pytest.raises(rb.ArgumentError, match=rf"{('q', 'qd', 'tau')[argument]}\b.*({words})"):
        model.forward_dynamics(*state)
    if argument == 0:
        with pytest.raises(rb.ArgumentError, match=rf"q\b.*({words})"):
            model.mass_matrix(state[0])


def test_a_batch_of_one_and_float32_keep_their_shape_and_precision(model):
    q, qd, tau = state_of(model)
    assert model.forward_dynamics(q[None], qd[None], tau[None]).shape == (1, model.nv)
    assert model.forward_dynamics(q[None], qd, tau).shape == (1, model.nv)
    assert model.mass_matrix(q.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("joint", [0, 2])
@pytest.mark.parametrize("factor", [0.0, 1 - 2e-6, 1 + 2e-6, 1e200])
def test_a_quaternion_of_another_length_is_refused(model, joint, factor):
    q, qd, tau = state_of(model)
    at = model.position_index[joint] + (3 if joint == 0 else 0)
    q[at : at + 4] *= factor
    for call in (lambda: model.forward_dynamics(q, qd, tau), lambda: model.mass_matrix(q)):
        with pytest.raises(rb.ArgumentError, match=rf"quaternion of body 'body{joint}', q\[{at}:{at + 4}\]"):
            call()


@pytest.mark.parametrize(
    "factor", [1 - 0.9e-6, 1 + 0.9e-6, np.sqrt(1 + 2e-6), np.sqrt(1 - 2e-6), np.sqrt(1 + 2.0000001e-6)]
)
def test_a_quaternion_at_the_limit_gives_the_result_or_the_error_of_the_checks_in_python(model, factor):
    q, qd, tau = state_of(model)
    q[3:7] *= factor
    found = []
    for call in (model.forward_dynamics, lambda *state: general(model, *state)):
        try:
            found.append(call(q, qd, tau).tobytes())
        except rb.ArgumentError as error:
            found.append(str(error))
    assert found[0] == found[1]


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("argument", range(3))
def test_a_state_that_is_not_finite_gives_nan_as_with_checks_in_python(model, argument, number):
    state = list(state_of(model))
    for at in range(state[argument].size):
        state[argument][at] = number
        found = model.forward_dynamics(*state)
        assert np.isnan(found).all()
        np.testing.assert_array_equal(found, general(model, *state))


def test_results_are_new_arrays(model):
    q, qd, tau = state_of(model)
    first, second = model.forward_dynamics(q, qd, tau), model.forward_dynamics(q, 2.0 * qd, tau)
    kept = first.copy()
    assert not np.may_share_memory(first, second)
    model.forward_dynamics(q, 3.0 * qd, tau)
    assert (first == kept).all()


def test_threads_do_not_share_working_memory(model):
    states = [state_of(model, seed) for seed in range(8)]
    expected = [model.forward_dynamics(*state).tobytes() for state in states]
    wrong = []

    def work(i):
        for _ in range(200):
            if model.forward_dynamics(*states[i]).tobytes() != expected[i]:
                wrong.append(i)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []


def test_a_copy_a_pickled_model_and_a_forked_child_compute_the_same(model):
    state = state_of(model)
    expected = model.forward_dynamics(*state).tobytes()
    for other in (pickle.loads(pickle.dumps(model)), type(model)(model.description)):
        assert other.forward_dynamics(*state).tobytes() == expected
    kernel_model = pickle.loads(pickle.dumps(model.kernel_model))
    assert kernel_model.nv == model.nv

    def check():
        if model.forward_dynamics(*state).tobytes() != expected:
            raise AssertionError("the child computes something else")

    assert exit_code_of_child(check) == 0


def test_out_may_be_a_subclass(model):
    q, qd, tau = state_of(model)
    out = np.empty(model.nv).view(Subclass)
    assert model.forward_dynamics(q, qd, tau, out=out) is out
    assert out.tobytes() == model.forward_dynamics(q, qd, tau).tobytes()


def test_zero_velocities_that_functions_add_stay_zero(model):
    q, qd, _ = state_of(model)
    for _ in range(2):
        found = model.bias_forces(q, qd)
        assert found.tobytes() == model.inverse_dynamics(q, qd, np.zeros(model.nv)).tobytes()
        found[:] = 1.0
    assert not model.kernel_model.zeros.any()


def test_poses_have_the_same_shape_after_a_call_with_out():
    model = random_tree(2, [-1, 0])
    q = np.ones(2)
    given = model.body_poses(q, out=np.empty((2, 12)))
    for _ in range(2):
        new = model.body_poses(q)
        assert new.translation.tobytes() == given.translation.tobytes()
        assert new.rotation.tobytes() == given.rotation.tobytes()
        assert (new.translation.shape, new.rotation.shape) == ((2, 3), (2, 3, 3))


def test_poses_are_copied_pickled_and_shown_like_other_poses():
    model = random_tree(2, [-1, 0])
    poses = model.body_poses(np.ones(2))
    shown = repr(model.body_poses(np.ones(2)))
    assert shown == repr(computed_pose(poses.translation, poses.rotation))
    assert poses.translation is poses.translation
    for same in (pickle.loads(pickle.dumps(poses)), copy.deepcopy(poses), poses @ rb.Pose()):
        assert same.translation.tolist() == poses.translation.tolist()
        assert same.rotation.tolist() == poses.rotation.tolist()
    with pytest.raises(dataclasses.FrozenInstanceError):
        poses.translation = np.zeros((2, 3))
    with pytest.raises(AttributeError, match=r"'Pose' object has no attribute 'rotations'; did you mean rotation\?"):
        getattr(poses, "rotations")  # noqa: B009 - a type checker would refuse the attribute


def test_calls_keep_no_references(model):
    q, qd, tau = state_of(model)
    invalid = q[:-1].copy()
    before = [sys.getrefcount(x) for x in (q, qd, tau, invalid)]
    for _ in range(100):
        result = model.forward_dynamics(q, qd, tau)
        assert model.kernel_model.single_calls[dynamics.forward_dynamics](invalid, qd, tau) is None
    assert [sys.getrefcount(x) for x in (q, qd, tau, invalid)] == before
    assert sys.getrefcount(result) == 2
    assert result.flags.owndata


@pytest.mark.skipif(not COMPILED, reason="there is no direct call")
def test_a_direct_call_checks_the_number_of_its_arguments(model):
    q, qd, tau = state_of(model)
    call = model.kernel_model.single_calls[dynamics.forward_dynamics]
    assert call(q, qd, tau) is not None
    assert call() is None and call(q, qd) is None and call(q, qd, tau, tau) is None
    with pytest.raises(TypeError):
        call(q, qd, tau=tau)
