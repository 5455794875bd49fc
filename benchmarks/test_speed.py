"""Benchmarks for pytest-benchmark: `pytest benchmarks --benchmark-enable`."""

import numpy as np
import pytest

import rbchain as rb


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("quantity", ["forward_dynamics", "inverse_dynamics"])
def test_a_batch_of_7_joint_arms(benchmark, quantity, dtype):
    model = rb.Model.serial_chain(7)
    states = np.random.default_rng(0).normal(size=(3, 4096, 7)).astype(dtype)
    benchmark(getattr(model, quantity), *states)


def test_one_7_joint_arm(benchmark):
    model = rb.Model.serial_chain(7)
    benchmark(model.forward_dynamics, *np.random.default_rng(0).normal(size=(3, 7)))


@pytest.mark.parametrize("settings", [{"method": "rk4", "step": 1e-3}, {"rtol": 1e-8}], ids=["rk4", "rk45"])
def test_a_thousand_motions(benchmark, settings):
    model = rb.Model.serial_chain(7)
    q, qd = np.random.default_rng(0).normal(size=(2, 1024, 7)) * 0.1
    benchmark(model.simulate, q, qd, 0.1, **settings)
