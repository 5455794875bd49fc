"""Functions of the user in plain Python, where float32 costs no compiling."""

import numpy as np

import rbchain as rb


def test_the_exception_of_a_float32_simulation_is_found_with_its_own_parameters():
    def above(t, q, qd, parameters, out):
        if parameters[0] > 0.1:
            raise ValueError("0.1 in float32 is more than 0.1")

    chain, start = rb.Model.serial_chain(1), np.zeros((2, 1), np.float32)
    drives = [rb.UserForces(above, [0.1])]
    motion = chain.simulate(start, start, 0.1, method="rk4", step=0.1, drives=drives)
    assert "ValueError: 0.1 in float32 is more than 0.1" in motion.message
