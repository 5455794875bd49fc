"""Located impacts and changes of modes in compiled lanes, whose samples differ, and in plain Python."""

import numpy as np
import pytest

import rbchain as rb

from .other_process import computed


def falling_rod(method, first, last):
    """A rod falls on a floor, slides and rocks, with a stop of its rotation and friction of a joint."""
    builder = rb.ModelBuilder(gravity=(0, 0, -10))
    builder.add_body("x", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=1.0))
    builder.add_body("z", parent="x", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia(mass=1.0))
    inertia, limits = rb.Inertia(mass=1.0, inertia=(0.01, 0.1, 0.1)), rb.JointLimits(-0.3, 0.3)
    builder.add_body("rod", parent="z", joint=rb.Revolute((0, 1, 0)), inertia=inertia, limits=limits)
    model, mu = builder.build(), np.array([0.1, 0.3, 0.5])
    floor = {"plane_point": (0, 0, 0), "plane_normal": (0, 0, 1), "friction": mu, "restitution": 0.4 * mu}
    forces = [rb.SphereContact("rod", point=(x, 0, 0), radius=0.05, **floor) for x in (0.5, -0.5)]
    forces += [rb.HardStops("rod", restitution=0.5), rb.DryFriction("x", mu, static=2 * mu)]
    samples = slice(first, last)
    for force in forces:
        for name in ("friction", "restitution", "kinetic", "static"):
            if np.ndim(getattr(force, name, 0.0)):
                object.__setattr__(force, name, getattr(force, name)[samples])
    q, qd = np.zeros((3, 3))[samples], np.zeros((3, 3))[samples]
    q[:, 1], q[:, 2], qd[:, 0] = 0.2, 0.2, 0.5 + mu[samples]
    motion = model.simulate(q, qd, 0.5, method=method, forces=forces, save_at=6)
    out = {"q": motion.q, "qd": motion.qd, "forces": motion.contact_forces}
    out["counts"] = np.array([record.count for record in motion.impacts])
    out["times"] = np.nan_to_num(motion.impacts[0].t)
    out["starts"] = np.nan_to_num(motion.sticking[2].start)
    return out


@pytest.mark.slow
def test_lanes_of_different_samples_agree_with_plain_python():
    compiled = falling_rod("rk45", 0, 3)
    plain = computed(falling_rod, "rk45", 0, 3, NUMBA_DISABLE_JIT="1")
    assert (compiled["counts"] > 0).any() and (compiled["starts"] > 0).any()
    np.testing.assert_array_equal(compiled["counts"], plain["counts"])
    for name in ("q", "qd", "times", "starts"):  # round-off shifts steps by a fraction of the tolerances
        np.testing.assert_allclose(compiled[name], plain[name], rtol=1e-8, atol=1e-9, err_msg=name)
    np.testing.assert_allclose(compiled["forces"], plain["forces"], rtol=1e-6, atol=1e-6)
    alone = falling_rod("rk45", 1, 2)
    for name in ("q", "qd", "times"):
        np.testing.assert_array_equal(compiled[name][1:2], alone[name], err_msg=name)


@pytest.mark.slow
def test_rosenbrock_in_lanes_agrees_with_rk45():
    stiff, expected = falling_rod("rosenbrock", 0, 3), falling_rod("rk45", 0, 3)
    np.testing.assert_array_equal(stiff["counts"], expected["counts"])
    for name in ("q", "qd", "times", "starts"):  # both methods have a relative tolerance of 1e-8
        np.testing.assert_allclose(stiff[name], expected[name], rtol=1e-6, atol=1e-7, err_msg=name)
    np.testing.assert_allclose(stiff["forces"], expected["forces"], rtol=1e-5, atol=1e-5)
