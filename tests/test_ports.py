"""The programs in `benchmarks/ports` that this machine can build agree with rbchain."""

import numpy as np
import pytest

from benchmarks.ports.__main__ import TASKS, solve
from benchmarks.ports.exchange import bodies
from benchmarks.ports.toolchains import build_all, ports
from tests.mechanisms import random_tree

# Eight rounding errors in each of about 100 operations, times the condition number of these trees, about 1e3.
AGREEMENT = 1e-10
MODELS = {
    "chain": random_tree(7, range(-1, 6)),
    "tree": random_tree(12, [-1, 0, 1, 1, 0, 4, -1, 6], ("revolute", "prismatic", "screw")),
}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ports")
    programs, missing = build_all(folder, ports(folder))
    return {program.name: program for program in programs}, dict(missing)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("task", TASKS)
def test_the_ports_agree_with_rbchain(built, tmp_path, name, task):
    programs, missing = built
    assert "NumPy" in programs  # NumPy is always available; the others need compilers
    assert all(why.endswith("not installed") for why in missing.values()), missing
    model, settings = MODELS[name], TASKS[task]
    states = np.random.default_rng(0).normal(size=(3, 5, model.nv))
    expected = solve(model, states, task, **settings)
    for program in programs.values():
        _, found, last = program.run(tmp_path, model, states, task, **settings)
        np.testing.assert_allclose(found, expected, rtol=0, atol=AGREEMENT * abs(expected).max(), err_msg=program.name)
        if task == "forward dynamics":  # the balance of forces that the port itself finds
            assert (last < 1e-9).all(), program.name


def test_an_unsupported_joint_is_refused_by_the_ports():
    with pytest.raises(ValueError, match="expected joints of type prismatic, revolute, screw"):
        bodies(random_tree(0, [-1], ("spherical",)), free_base=False)
