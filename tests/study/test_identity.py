"""A study continues only with the user functions that gave the stored results, and all that these functions read."""

import functools
import importlib
import os
import subprocess
import sys
import types

import numpy as np
import pytest

import rbchain as rb

GAINS = np.array([3.0])
HANDLE = (x for x in (1.0, 2.0))


class Settings:
    gain = 3.0


class Controller:
    def __init__(self, gain):
        self.gain = gain

    def force(self, t, q, qd, parameters):
        return -self.gain * q

    def __call__(self, t, q, qd, parameters):
        return -self.gain * q


def of_array(t, q, qd, parameters):
    return -GAINS[0] * q


def of_class(t, q, qd, parameters):
    return -Settings.gain * q


def helper(q):
    return GAINS[0] * q


def of_helper(t, q, qd, parameters):
    return -helper(q)


def of_gain(t, q, qd, parameters, gain):
    return -gain * q


def of_handle(t, q, qd, parameters):
    return -next(HANDLE) * q


def of_import(t, q, qd, parameters):
    return importlib.import_module("ma" + "th"[: q.size + 2]).cos(0.0) * q


def of_environment(t, q, qd, parameters):
    return -float(os.environ.get("GAIN_OF_TESTS", "3")) * q


def compiled(t, q, qd, parameters, out):
    out[0] = -GAINS[0] * q[0]


#: Functions of controllers and the message if the gain is 4 instead of 3, and 3.0 stands for the number.
FUNCTIONS = {
    "array": (lambda gain: of_array, "GAINS"),
    "class": (lambda gain: of_class, "Settings.gain was '3.0', is '4.0'"),
    "helper": (lambda gain: of_helper, "helper"),
    "method": (lambda gain: Controller(gain).force, "gain was '3.0', is '4.0'"),
    "object": (lambda gain: Controller(gain).__call__, "gain was '3.0', is '4.0'"),
    "partial": (lambda gain: functools.partial(of_gain, gain=gain), "was '3.0', is '4.0'"),
    "compiled function": (lambda gain: compiled, "GAINS"),
}


def study_of(controller, **keys):
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("s", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(2.0))
    given = {
        "model": builder.build(),
        "samples": 4,
        "drives": [rb.Sampled(controller, period=0.1)],
        "vary": {"*.q": rb.Uniform(0.5, 1.0)},
        "simulate": {"duration": 0.4, "method": "rk4", "step": 0.1, "save_at": 2},
    }
    return rb.Study(**(given | keys))


@pytest.mark.plain_python
@pytest.mark.parametrize("kind", FUNCTIONS)
def test_a_study_does_not_continue_with_other_numbers_of_a_controller(kind, tmp_path, monkeypatch):
    make, message = FUNCTIONS[kind]
    stored = study_of(make(3.0)).run(tmp_path).q_final.values
    again = study_of(make(3.0)).run(tmp_path).q_final.values
    assert stored.tobytes() == again.tobytes()
    monkeypatch.setattr(sys.modules[__name__], "GAINS", np.array([4.0]))
    monkeypatch.setattr(Settings, "gain", 4.0)
    with pytest.raises(rb.StudyError, match=r"another study: drives\[0\].controller.*sha256 was") as refused:
        study_of(make(4.0)).run(tmp_path)
    assert message in str(refused.value)
    assert np.abs(study_of(make(4.0)).run().q_final.values - stored).max() > 1e-3


@pytest.mark.plain_python
@pytest.mark.parametrize("place", ["measure", "event", "density"])
def test_the_functions_of_measures_events_and_signals_belong_to_the_study(place, tmp_path, monkeypatch):
    def keys():
        if place == "measure":
            return {"measures": [{"name": "x", "quantity": "function", "function": lambda m, t: helper(t.q[:, -1, 0])}]}
        if place == "event":
            event = rb.Event(function=lambda t, q, qd, parameters, out: out.fill(helper(q[0]) - 1.0), stop=False)
            return {"events": [event]}
        noise = rb.Signal.noise(lambda f: GAINS[0] + 0 * f, [0.5, 1.0], sines=2)
        return {"forces": [rb.Wrench("s", force=(noise, 0, 0))]}

    study_of(of_class, **keys()).run(tmp_path)
    monkeypatch.setattr(sys.modules[__name__], "GAINS", np.array([4.0]))
    with pytest.raises(rb.StudyError, match="contains the results of another study"):
        study_of(of_class, **keys()).run(tmp_path)


@pytest.mark.plain_python
def test_a_function_whose_changes_would_not_be_noticed_is_refused_for_results_in_a_folder(tmp_path):
    message = "of_handle depends on HANDLE, a builtins.generator, whose changes rbchain cannot detect"
    with pytest.raises(rb.StudyError, match=message):
        study_of(of_handle).run(tmp_path)
    reads = "functions of the study read files or environment variables .*of_environment: environ"
    with pytest.warns(UserWarning, match=reads):
        study_of(of_environment).run(tmp_path / "environment")
    imports = "functions of the study import modules that rbchain cannot determine .*of_import: import_module"
    with pytest.warns(UserWarning, match=imports):
        study_of(of_import).run(tmp_path / "import")


def digests():
    """The identity of all functions, from another process."""
    return [study_of(make(3.0)).plan.as_json()["drives"] for make, _ in FUNCTIONS.values()]


@pytest.mark.slow
@pytest.mark.plain_python
def test_another_process_continues_a_study():
    program = "from tests.study.test_identity import digests; print(digests())"
    plain = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    found = subprocess.run([sys.executable, "-c", program], check=False, env=plain, capture_output=True, text=True)
    assert found.stdout == f"{digests()}\n", found.stderr


def test_a_function_is_compiled_again_when_a_global_that_it_reads_changes(monkeypatch):
    """A spring of stiffness k at q = 1 gives the acceleration -k over the inertia."""
    model = rb.Model.serial_chain(1, gravity=(0, 0, 0))
    inertia = model.mass_matrix([0.0]).item()

    def acceleration(gain):
        monkeypatch.setattr(sys.modules[__name__], "GAINS", np.array([gain]))
        motion = model.simulate(
            [[1.0]], [[0.0]], 1e-3, method="rk4", step=1e-3, drives=[rb.UserForces(compiled)], save_at=2
        )
        return motion.qdd[0, 0, 0]

    np.testing.assert_allclose([acceleration(3.0), acceleration(4.0)], [-3.0 / inertia, -4.0 / inertia], rtol=1e-12)


@pytest.mark.plain_python
def test_modules_of_helper_functions_belong_to_the_study():
    settings = types.ModuleType("settings_of_identity")
    settings.gain = 3.0
    controller = eval("lambda t, q, qd, parameters: -settings.gain * q", {"settings": settings})
    stored = study_of(controller).plan.as_json()
    settings.gain = 4.0
    assert study_of(controller).plan.as_json() != stored


@pytest.mark.plain_python
def test_a_study_of_a_model_with_collision_shapes_has_a_folder(tmp_path):
    """Its shapes are a part of its identity."""

    def study(radius):
        builder = rb.ModelBuilder()
        ball = rb.CollisionShape("sphere", (radius,), pose=rb.Pose((0, 0, 0.1)))
        builder.add_body("ball", joint=rb.Free(), inertia=rb.Inertia.sphere(0.1, mass=1.0), collisions=[ball])
        return rb.Study(builder.build(), samples=1, simulate={"duration": 0.01, "method": "rk4", "step": 0.01})

    first = study(0.1).run(tmp_path / "ball")
    assert (study(0.1).run(tmp_path / "ball").q_final.values == first.q_final.values).all()
    with pytest.raises(rb.StudyError, match=r"model\.sha256 was"):
        study(0.2).run(tmp_path / "ball")
