"""Samples that are simulated again have the states of the study, bit for bit, for all saved times."""

import numpy as np
import pytest

import rbchain as rb

pytestmark = pytest.mark.plain_python

SAMPLES = 4
START = {"slide.q": rb.Dispersion(rb.Uniform(0.0, 0.02), how="add")}
MASS = {"*.mass": rb.Dispersion(rb.Discrete([1.0, 1.5]), how="multiply")}
FLOOR = rb.SphereContact(
    "arm", point=(0.1, 0, 0), radius=0.0, plane_point=(0, 0, -0.02), plane_normal=(0, 0, 1), restitution=0.8
)
SPRING = rb.SpringDamper(None, "arm", point_a=(0, 0, 0.3), point_b=(0, 0, 0), stiffness=50.0, damping=0.1)
CASES = {
    "rk45": ({"rtol": 1e-4}, [SPRING]),
    "rk45 with contact": ({"rtol": 1e-4}, [FLOOR]),
    "rk45 with dry friction": ({"rtol": 1e-4}, [rb.DryFriction("slide", 0.5)]),
    "rosenbrock": ({"method": "rosenbrock", "rtol": 1e-4}, [SPRING]),
    "rosenbrock with contact": ({"method": "rosenbrock", "rtol": 1e-4}, [FLOOR]),
    "radau": ({"method": "radau", "rtol": 1e-4}, [SPRING]),
    "rk4": ({"method": "rk4", "step": 0.015}, [SPRING]),
    "implicit": ({"method": "implicit", "step": 0.015}, [SPRING]),
    "moreau with contact": ({"method": "moreau", "step": 0.015}, [FLOOR]),
}


def study_of(settings, forces, vary=START | MASS):
    """An arm on a vertical slide, which falls 2 cm onto a floor."""
    builder = rb.ModelBuilder(gravity=(0, 0, -9.81))
    builder.add_body("slide", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia.sphere(0.05, mass=1.0))
    builder.add_body("arm", parent="slide", joint=rb.Revolute((0, 1, 0)), inertia=rb.Inertia.rod(0.2, mass=0.5))
    return rb.Study(
        model=builder.build(),
        samples=SAMPLES,
        seed=3,
        vary=vary,
        forces=list(forces),
        simulate={"duration": 0.08, "save_at": 4, **settings},
        outputs={"motion": True},
    )


@pytest.mark.fast_cases("implicit")
@pytest.mark.parametrize("case", CASES)
def test_a_motion_that_is_simulated_again_has_the_bits_of_the_stored_one(case):
    study = study_of(*CASES[case])
    stored = study.run()
    again = study.motions(SAMPLES)  # at times between, if these do not change the motion
    every = (again.t.size - 1) // (stored.time.size - 1)
    assert np.array_equal(again.t[::every], stored.time.values)
    assert again.q[:, ::every].tobytes() == stored.q.values.tobytes()
    assert again.qd[:, ::every].tobytes() == stored.qd.values.tobytes()
    for k in range(SAMPLES):
        ends = study.sample(k, save_at=2)[2]
        assert (ends.t.tolist(), ends.q.tobytes()) == ([0.0, 0.08], stored.q.values[k, [0, -1]].tobytes())


@pytest.mark.slow_cases("radau", "rk45 with contact", "rosenbrock with contact", "save_at1-rosenbrock")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("save_at", [7, [0.02, 0.051]])
def test_times_that_would_change_the_motion_are_refused(case, save_at):
    """Other times either leave the bits of the motion as they are, or are refused."""
    study = study_of(*CASES[case])
    stored = study.run().q.values
    try:
        motion = study.motions(SAMPLES, save_at=save_at)
    except rb.StudyError as error:
        assert "they change the steps, and so the trajectory; expected some of the 4 times of the study" in str(error)
        return
    asked = np.linspace(0.0, 0.08, save_at) if np.ndim(save_at) == 0 else np.asarray(save_at)
    np.testing.assert_allclose(motion.t, asked, rtol=1e-15)
    assert motion.end_q.tobytes() == stored[:, -1].tobytes()


def test_times_of_the_study_can_be_chosen_among_with_all_results():
    """A trajectory at some of its times has the results that it has at all of its times."""
    study = study_of(*CASES["moreau with contact"])
    motion = study.motions(SAMPLES, save_at=4)
    ends = motion.at_times([0, 3])
    for name in ("q", "qd", "tau"):
        assert getattr(ends, name).tobytes() == getattr(motion, name)[:, [0, 3]].tobytes()
    assert ends.contact_forces.tobytes() == motion.contact_forces[:, [0, 3]].tobytes()
    assert study.motions(SAMPLES, save_at=4).t.tolist() == motion.t.tolist()


@pytest.mark.slow_cases("rk4")
@pytest.mark.parametrize("vary", [START | MASS, {}])
@pytest.mark.parametrize("case", ["rk45", "rk4"])
def test_one_sample_has_the_bits_of_the_study_also_if_all_are_equal(case, vary):
    study = study_of(*CASES[case], vary=vary)
    stored = study.run().q.values
    for k in (0, SAMPLES - 1):
        motion = study.sample(k)[2]
        every = (motion.t.size - 1) // (stored.shape[1] - 1)
        assert motion.q[::every].tobytes() == stored[k].tobytes()
