"""Compiled functions do not write to memory that they take from outside, where Numba would drop it."""

import numpy as np
import pytest

import rbchain as rb
from rbchain import compiled
from rbchain.compiling.captured import captured_memory

ARM = rb.Model.serial_chain(1)
BLOCK = compiled.block_of(ARM)
TABLE = np.zeros(3)
CONSTANTS = (np.array([2.0]), np.array([3.0]))
for array in CONSTANTS:
    array.flags.writeable = False


def by_global(t, q, qd, parameters, out):
    compiled.inverse_dynamics(BLOCK.model, BLOCK.q, BLOCK.qd, BLOCK.qdd, BLOCK.loads, BLOCK.work, 0)
    out[0] = BLOCK.loads.tau[0, 0]


def closure(block):
    def force(t, q, qd, parameters, out):
        block.q[0, 0] = q[0]
        out[0] = block.q[0, 0]

    return force


def by_part(q, work):
    def force(t, q_now, qd, parameters, out):
        q[0, 0] = q_now[0]
        out[0] = work.dof[0, 0, 0]

    return force


def by_helper(t, q, qd, parameters, out):
    by_global(t, q, qd, parameters, out)


def to_table(t, q, qd, parameters, out):
    TABLE[0] = q[0]
    out[0] = TABLE[0]


def of_constants(t, q, qd, parameters, out):
    out[0] = -CONSTANTS[0][0] * CONSTANTS[1][0] * q[0]


@pytest.mark.parametrize(
    ("function", "name"),
    [(by_global, "BLOCK"), (closure(BLOCK), "block"), (by_part(BLOCK.q, BLOCK.work), "work"), (by_helper, "BLOCK")],
)
def test_a_force_with_a_block_from_outside_is_refused(function, name):
    with pytest.raises(rb.ArgumentError, match=f"reads '{name}' from outside, a tuple with writeable arrays"):
        ARM.simulate([[0.3]], [[0.0]], 0.1, method="rk4", step=0.1, drives=[rb.UserForces(function)], save_at=2)


def test_a_driver_with_a_block_from_outside_is_refused():
    @compiled.driver
    def weight(out):
        out[0] = BLOCK.q[0, 0]

    if not hasattr(weight, "py_func"):
        return  # plain Python writes to the block itself
    with pytest.raises(TypeError, match="weight reads 'BLOCK' from outside"):
        weight(np.zeros(1))


def test_a_force_that_writes_to_an_array_from_outside_is_refused():
    message = r"'to_table' writes to an array that is defined outside of it \(.*test_captured_memory.py, line"
    with pytest.raises(rb.ArgumentError, match=message):
        ARM.simulate([[0.3]], [[0.0]], 0.1, method="rk4", step=0.1, drives=[rb.UserForces(to_table)], save_at=2)


def test_constants_in_tuples_can_be_read():
    assert captured_memory(of_constants) is None
    weightless = ARM.replace(gravity=(0, 0, 0))
    motion = weightless.simulate(
        [[0.3]], [[0.0]], 0.1, method="rk4", step=0.1, drives=[rb.UserForces(of_constants)], save_at=2
    )
    np.testing.assert_allclose(motion.tau[0, :, 0], -6.0 * motion.q[0, :, 0], rtol=1e-15)
