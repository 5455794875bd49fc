"""All numbers of a file in other units give the model of the file in SI. pint converts the numbers of the tests."""

import dataclasses
import re

import numpy as np
import pint
import pytest

import rbchain as rb

pytestmark = pytest.mark.plain_python
QUANTITY = pint.UnitRegistry().Quantity
SYSTEMS = {
    "mm-kg-s": {"m": "mm", "N": "(kg*mm/s^2)"},
    "cm-g-s": {"m": "cm", "kg": "g", "N": "dyn"},
    "inch-pound": {"m": "inch", "kg": "lb", "N": "lbf"},
}
# {number:SI unit} is a number in SI. Joint "slide" is prismatic, "nut" a screw, "plane" has one rotation.
MODEL = """
format = "rbchain 1"
gravity = [0, 0, {-9.8:m/s^2}]
fluid_density = {1000:kg/m^3}
HEAD
[[body]]
name = "slide"
joint = { type = "prismatic", axis = [0, 0, 1] }
mass = {2:kg}
cg = [{0.1:m}, 0, 0]
rotor_inertia = {1e-4:kg*m^2}
gear_ratio = {30:rad/m}
immersion = { volume = {0.002:m^3}, buoyancy_center = [0, {0.05:m}, 0] }
[body.limits]
lower = {-0.5:m}
upper = {0.4:m}
velocity = {2:m/s}
effort = {9:N}
acceleration = {3:m/s^2}
jerk = {4:m/s^3}
[body.passive]
stiffness = {40:N/m}
rest_position = {0.1:m}
cubic_stiffness = {7:N/m^3}
damping = {3:N*s/m}
friction = {1:N}
static_friction = {2:N}
stribeck_velocity = {0.2:m/s}
friction_velocity = {0.02:m/s}
stop_lower = {-0.3:m}
stop_upper = {0.3:m}
limit_stiffness = {500:N/m}
limit_damping = {0.6:s/m}
friction_asymmetry = {0.5:N}
[[body]]
name = "nut"
parent = "slide"
joint = { type = "screw", axis = [1, 0, 0], pitch = {0.01:m/rad} }
placement = { translation = [{0.2:m}, 0, 0] }
mass = {1:kg}
inertia = [{0.01:kg*m^2}, {0.02:kg*m^2}, {0.02:kg*m^2}]
rotor_inertia = {2e-4:kg*m^2}
gear_ratio = 5
[body.limits]
lower = {-1:rad}
upper = {2:rad}
velocity = {3:rad/s}
effort = {8:N*m}
acceleration = {5:rad/s^2}
jerk = {6:rad/s^3}
[body.passive]
stiffness = {4:N*m/rad}
rest_position = {0.2:rad}
damping = {0.3:N*m*s/rad}
friction = {0.1:N*m}
[[body]]
name = "plane"
joint = { type = "planar" }
mass = {1:kg}
inertia = [{0.01:kg*m^2}, {0.02:kg*m^2}, {0.02:kg*m^2}]
[body.passive]
damping = [{1:N*s/m}, {2:N*s/m}, {3:N*m*s/rad}]
[[drive]]
type = "PID"
joint = "slide"
reference = { type = "sines", amplitude = {0.2:m}, angular_frequency = 3, phase = {0.5:rad} }
kp = {20:N/m}
kd = {2:N*s/m}
ki = {1:N/(m*s)}
limit = {50:N}
[[drive]]
type = "PrescribedVelocity"
joint = "plane"
dof = 2
signal = {0.7:rad/s}
[[drive]]
type = "ComputedTorque"
joint = "plane"
dof = 0
reference = {0.3:m}
kp = 4
kd = 2
limit = {6:N}
[[constraint]]
type = "coupler"
name = "rack"
joint = "slide"
other = "nut"
ratio = {0.3:m/rad}
offset = {0.02:m}
"""


def model_in(tmp_path, system=None, degrees=False):
    symbols = SYSTEMS.get(system, {}) | ({"rad": "deg"} if degrees else {})

    def number(match):
        unit = re.sub(r"[A-Za-z]+", lambda symbol: symbols.get(symbol[0], symbol[0]), match[2])
        return repr(float(QUANTITY(float(match[1]), match[2]).to(unit).magnitude))

    head = (f'units = "{system}"\n' if system else "") + ("degrees = true\n" if degrees else "")
    text = re.sub(r"\{([-\d.e]+):([^{}]+)\}", number, MODEL).replace("HEAD", head)
    path = tmp_path / "model.toml"
    path.write_text(text)
    return rb.load(path)


@pytest.mark.parametrize("degrees", [False, True])
@pytest.mark.parametrize("system", [None, *SYSTEMS])
def test_a_file_in_other_units_is_the_model_in_si(tmp_path, system, degrees):
    found, expected = model_in(tmp_path, system, degrees), model_in(tmp_path)
    for field in dataclasses.fields(expected.description):
        a, b = getattr(found.description, field.name), getattr(expected.description, field.name)
        if isinstance(b, np.ndarray) and b.dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-15, err_msg=field.name)
    (pid, prescribed, computed), (expected_pid, _, _) = found.drives, expected.drives
    for name in ("kp", "kd", "ki", "limit"):
        assert getattr(pid, name) == pytest.approx(getattr(expected_pid, name), rel=1e-13)
    t = np.linspace(0.0, 1.0, 5)
    np.testing.assert_allclose(pid.reference(t), expected_pid.reference(t), rtol=1e-13, atol=1e-15)
    assert (computed.kp, computed.kd) == (4.0, 2.0)
    assert computed.limit == pytest.approx(6.0, rel=1e-13)
    speed = prescribed.signal
    np.testing.assert_allclose(speed(t) if isinstance(speed, rb.Signal) else speed, 0.7, rtol=1e-13)
    assert np.isfinite(expected.position_limits[:2]).all()
    assert expected.pitch[1] == 0.01


def test_numbers_of_joints_may_have_units_of_their_own(tmp_path):
    path = tmp_path / "door.toml"
    path.write_text(
        'format = "rbchain 1"\n[[body]]\nname = "door"\njoint = { type = "revolute", axis = [0, 0, 1] }\nmass = 1\n'
        'inertia = [1, 1, 1]\nrotor_inertia = "3 g cm^2"\nlimits = { lower = "-30 deg", effort = "500 N mm" }\n'
        'passive = { damping = "0.1 N m s/deg" }\n'
    )
    door = rb.load(path)
    np.testing.assert_allclose(door.position_limits[0, 0], np.radians(-30), rtol=1e-15)
    np.testing.assert_allclose(door.effort_limit, 0.5, rtol=1e-15)
    np.testing.assert_allclose(door.rotor_inertia, 3e-7, rtol=1e-13)
    np.testing.assert_allclose(door.damping, 0.1 * 180 / np.pi, rtol=1e-13)
    path.write_text(path.read_text().replace("-30 deg", "-30 kg"))
    with pytest.raises(rb.RbchainError, match=r"'door': limits: lower: found '-30 kg'; expected .* '1 rad'"):
        rb.load(path)


def test_matrices_of_an_immersion_in_other_units_are_refused(tmp_path):
    path = tmp_path / "ball.toml"
    path.write_text(
        'format = "rbchain 1"\nunits = "mm-kg-s"\n[[body]]\nname = "ball"\njoint = { type = "free" }\nmass = 1\n'
        "inertia = [1, 1, 1]\nimmersion = { linear_damping = [1, 1, 1, 1, 1, 1] }\n"
    )
    with pytest.raises(rb.RbchainError, match=r"'ball': immersion has linear_damping, but the file has other units"):
        rb.load(path)
