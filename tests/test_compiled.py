"""Sweeps called from compiled user code give the numbers of the model's methods and do not call Python."""

import re
import types

import numpy as np
import pytest

import rbchain as rb
from rbchain import compiled

from .mechanisms import random_tree

ALL_JOINTS = ("free", "revolute", "spherical", "screw", "universal", "prismatic", "planar", "composite")


def mixed():
    return random_tree(12, [-1, 0, 0, 1, 2, 1], ALL_JOINTS)


@compiled.driver
def everything(block, k, H, C, J, energies, composite, scratch, body):
    """Call each documented sweep once."""
    compiled.forward_dynamics(block.model, block.q, block.qd, block.loads, block.qdd, block.work, k)
    compiled.mass_matrix(block.model, block.q, H, composite, block.work, k)
    compiled.coriolis_matrix(block.model, block.q, block.qd, C, scratch, block.work, k)
    point = compiled.Point(body, block.model.parent.shape[0], (0.1, 0.2, 0.3))
    compiled.jacobian(block.model, block.q, point, J, block.work, k)
    compiled.energy(block.model, block.q, block.qd, energies, block.work, k)
    for i in range(block.loads.tau.shape[0]):
        block.loads.tau[i, k] = 0.0
    compiled.inverse_dynamics(block.model, block.q, block.qd, block.qdd, block.loads, block.work, k)


@compiled.driver
def everything_at_once(block, H, C, J, energies, composite, scratch, body):
    everything(block, compiled.all_lanes(block.q), H, C, J, energies, composite, scratch, body)


@pytest.mark.slow_cases("True")
@pytest.mark.parametrize("register_full", [False, True])
def test_sweeps_called_from_user_code_agree_with_the_methods_of_the_model(register_full):
    model = mixed()
    block = compiled.block_of(model, register_full=register_full)
    samples, n = block.q.shape[1], model.nv
    q, qd = model.random_state(np.random.default_rng(0), samples)
    tau = np.random.default_rng(1).normal(size=qd.shape)
    block.q[:], block.qd[:], block.loads.tau[:] = q.T, qd.T, tau.T
    H, C, J, energies = (np.zeros((*shape, samples)) for shape in ((n, n), (n, n), (6, n), (2,)))
    scratch = np.zeros((n, compiled.RIGID_ROWS, samples)), np.zeros((n, compiled.CORIOLIS_ROWS, samples))
    if register_full:
        everything_at_once(block, H, C, J, energies, *scratch, n - 1)
    else:
        everything(block, 0, H, C, J, energies, *scratch, n - 1)
    expected = [
        (block.qdd.T, model.forward_dynamics(q, qd, tau)),
        (block.loads.tau.T, tau),
        (np.moveaxis(H, -1, 0), model.mass_matrix(q)),
        (np.moveaxis(C, -1, 0), model.coriolis_matrix(q, qd)),
        (np.moveaxis(J, -1, 0), model.jacobian(q, model.body_names[-1], point=(0.1, 0.2, 0.3))),
        (energies.T, np.stack(model.energy(q, qd), -1)),
    ]
    # one lane and several differ by round-off; recomputed forces also by the condition number of the accelerations
    condition = np.linalg.cond(model.mass_matrix(q)).max()
    for found, value in expected:
        assert np.abs(found - value).max() <= 64 * n * np.finfo(float).eps * condition * np.abs(value).max()


@compiled.driver
def accelerate(block):
    compiled.forward_dynamics(block.model, block.q, block.qd, block.loads, block.qdd, block.work, 0)


def test_a_wrench_of_a_block_is_force_before_moment():
    model = mixed()
    block, rng = compiled.block_of(model), np.random.default_rng(2)
    q, qd = model.random_state(rng)
    wrenches = rng.normal(size=(model.n_bodies, 6))
    last_dofs = np.append(model.velocity_index[1:], model.nv) - 1
    block.q[:, 0], block.qd[:, 0], block.loads.wrenches[last_dofs, :, 0] = q, qd, wrenches
    accelerate(block)
    expected = model.forward_dynamics(q, qd, np.zeros(model.nv), wrenches)
    round_off = 64 * model.nv * np.finfo(float).eps * np.linalg.cond(model.mass_matrix(q)) * np.abs(expected).max()
    np.testing.assert_allclose(block.qdd[:, 0], expected, rtol=0, atol=round_off)


@pytest.mark.slow
def test_compiled_user_code_with_sweeps_does_not_call_python():
    """Except for its wrapper, the machine code of the function contains no call of Python's API.

    Numba shows only code that it has just compiled. A function that is in no file is never loaded from the cache.
    """
    code = everything.py_func.__code__.replace(co_filename="<in no file>")
    in_no_file = compiled.driver(types.FunctionType(code, everything.py_func.__globals__))
    block = compiled.block_of(mixed())
    n = block.qd.shape[0]
    squares, J, energies = np.zeros((2, n, n, 1)), np.zeros((6, n, 1)), np.zeros((2, 1))
    scratch = np.zeros((n, compiled.RIGID_ROWS, 1)), np.zeros((n, compiled.CORIOLIS_ROWS, 1))
    in_no_file(block, 0, *squares, J, energies, *scratch, 0)
    (signature,) = in_no_file.nopython_signatures
    functions = re.findall(r"^define (.*?)^}", in_no_file.inspect_llvm(signature.args), re.MULTILINE | re.DOTALL)
    own = [f for f in functions if "cpython" not in f.split("(")[0] and "cfunc" not in f.split("(")[0]]
    assert own
    for function in own:
        called = re.findall(r"call [^@]*@\"?([\w.]+)", function)
        assert not [name for name in called if name.startswith(("Py", "_Py", "NRT_", "numba_gil"))]


@pytest.mark.slow
def test_a_block_holds_the_parameters_of_its_samples():
    model = mixed()
    mass, gravity = model.mass * np.linspace(1.0, 2.0, 20)[:, None], np.linspace([0, 0, 1], [3, 2, 0], 20)
    many = model.vary(mass=mass, gravity=gravity)
    width = compiled.block_of(model, register_full=True).q.shape[1]
    samples = np.random.default_rng(0).integers(0, 20, width)
    block = compiled.block_of(many, register_full=True, samples=samples)
    n = model.nv
    energies, composite = np.zeros((2, width)), np.zeros((n, compiled.RIGID_ROWS, width))
    squares, scratch = np.zeros((2, n, n, width)), np.zeros((n, compiled.CORIOLIS_ROWS, width))
    q, qd = model.random_state(np.random.default_rng(1), width)
    block.q[:], block.qd[:] = q.T, qd.T
    everything_at_once(block, *squares, np.zeros((6, n, width)), energies, composite, scratch, 0)
    for lane, sample in enumerate(samples):
        single = model.vary(mass=many.mass[sample], gravity=many.gravity[sample])
        expected = np.array(single.energy(q[lane], qd[lane]))
        np.testing.assert_allclose(energies[:, lane], expected, rtol=0, atol=1e-13 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("varied", "samples", "message"),
    [
        (
            False,
            [0],
            r"samples is \[0\], but the samples of this model do not differ. Omit samples",
        ),
        (
            True,
            None,
            r"samples is not given, but the 5 samples of this model differ; "
            r"expected samples=\[...\] with 1 whole number from 0 to 4",
        ),
        (True, [5], r"samples is \[5\]; expected 1 whole number from 0 to 4, one for each place"),
        (True, [-1], r"samples is \[-1\]; expected 1 whole number from 0 to 4"),
        (True, [0, 1], r"samples is \[0, 1\]; expected 1 whole number from 0 to 4"),
        (True, 0, "samples is 0; expected 1 whole number from 0 to 4"),
        (True, [0.5], r"samples is \[0.5\]; expected 1 whole number from 0 to 4"),
        (True, [np.nan], r"samples is \[nan\]; expected 1 whole number from 0 to 4"),
        (True, ["first"], r"samples is \['first'\]; expected real numbers"),
        (True, [True], "samples has type bool; expected real numbers"),
    ],
)
def test_an_invalid_selection_of_samples_is_refused(varied, samples, message):
    model = rb.Model.serial_chain(2)
    model = model.vary(mass=np.ones((5, 2))) if varied else model
    with pytest.raises(rb.ArgumentError, match=message):
        compiled.block_of(model, samples=samples)


def test_a_block_of_an_integer_type_is_refused():
    with pytest.raises(rb.ArgumentError, match="dtype is int64; expected float64 or float32"):
        compiled.block_of(rb.Model.serial_chain(2), dtype=int)
