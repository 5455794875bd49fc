"""Derivatives of motions by the parameters of springs and bushings between bodies, and their fits."""

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

import rbchain as rb

from .mechanisms import slide
from .test_sensitivities import (
    DURATION,
    FIXED,
    LENGTH,
    LINKS,
    START,
    STEP,
    TIGHT,
    extrapolated,
    floating,
    rate_of_two_links,
    two_links,
)
from .test_sensitivities_of_closed_chains import slides_of, trammel

plain = pytest.mark.plain_python
SPRING = {"stiffness": 20.0, "damping": 1.5, "rest_length": 0.3}
POINTS = {"point_a": (0.7, -0.4, 0.0), "point_b": (0.3, 0.05, 0.0)}


def spring_torques(state, x):
    """The joint forces of a spring from the point a of the world to the point b of the second link, in closed form."""
    q1, q2, v1, v2 = state
    (xa, ya, _), (xb, yb, _) = POINTS.values()
    c, s = np.cos(q1 + q2), np.sin(q1 + q2)
    arm = np.array([c * xb - s * yb, s * xb + c * yb])
    elbow = LENGTH * np.array([np.cos(q1), np.sin(q1)])
    d = elbow + arm - [xa, ya]
    turn = lambda r: np.array([-r[1], r[0]])  # noqa: E731
    velocity = v1 * turn(elbow) + (v1 + v2) * turn(arm)
    length = np.sqrt(d @ d)
    tension = x["stiffness"] * (length - x["rest_length"]) + x["damping"] * (d @ velocity) / length
    force = -tension * d / length
    return np.array([force @ turn(elbow + arm), force @ turn(arm)])


@pytest.mark.slow_cases("from the world")
@plain
@pytest.mark.parametrize("is_turned", [False, True], ids=["from the world", "to the world"])
def test_a_spring_agrees_with_complex_steps(is_turned):
    """A spring has the same derivatives if its ends change places."""
    ends = {"frame_a": None, "frame_b": "link2", **POINTS}
    if is_turned:
        ends = {"frame_a": "link2", "frame_b": None, "point_a": POINTS["point_b"], "point_b": POINTS["point_a"]}
    spring = rb.SpringDamper(**ends, **SPRING, name="cord")
    names = [*(f"cord.{field}" for field in SPRING), "link2.mass"]
    motion = two_links().simulate(
        START[:2], START[2:], DURATION, forces=[spring], derivatives=names, save_at=2, **TIGHT
    )
    for field, value in SPRING.items():
        x = SPRING | {field: value + 1j * STEP}
        end = extrapolated(
            lambda s, x=x: rate_of_two_links(s, LINKS, lambda state: spring_torques(state, x)),
            START.astype(complex),
            DURATION,
        )
        np.testing.assert_allclose(motion.q[-1], end.real[:2], rtol=0, atol=1e-11)
        found = motion.derivatives[f"cord.{field}"]
        assert found.shape == (2, 4)
        assert not found[0].any()
        np.testing.assert_allclose(found[-1], end.imag / STEP, rtol=0, atol=1e-9, err_msg=field)


@pytest.mark.slow
@plain
def test_a_spring_between_links_acts_on_the_path_between_them_only():
    """The spring from the first to the second link turns the second joint only."""
    spring = rb.SpringDamper("link1", "link2", point_a=(0.1, 0.2, 0), point_b=(0.2, -0.1, 0), **SPRING)
    names = [f"link1-link2.{field}" for field in SPRING]
    motion = two_links().simulate(START[:2], START[2:], 0.3, forces=[spring], derivatives=names, save_at=2, **TIGHT)
    check_by_differences(two_links(), START, 0.3, spring, SPRING, motion)


def check_by_differences(model, start, duration, spring, fields, motion, names="link1-link2"):
    """Compare the derivatives at the end with differences of sixth order of simulations."""
    weights, steps = np.array([3 / 4, -3 / 20, 1 / 60]), np.array([1.0, 2, 3, -1, -2, -3])
    nq = model.nq
    for field, value in fields.items():
        h = 0.02 * value
        varied = type(spring)(**{**vars(spring), field: value + h * steps})
        states = np.tile(start, (6, 1))
        ends = model.simulate(states[:, :nq], states[:, nq:], duration, forces=[varied], save_at=[duration], **TIGHT)
        moves = np.concatenate([model.difference(motion.q[-1:], ends.q[:, -1]), ends.qd[:, -1]], -1)
        wanted = weights @ (moves[:3] - moves[3:]) / h
        found = motion.derivatives[f"{names}.{field}"][-1]
        assert np.abs(wanted).max() > 1e-5
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-8, err_msg=field)


@pytest.mark.slow
@plain
def test_a_cable_that_is_slack_does_not_depend_on_its_parameters():
    """A mass of 2 kg moves away from a wall. The cable of 1 m is slack up to 0.5 s, and then the mass oscillates."""
    cable = rb.SpringDamper(
        *(None, "slide"),
        point_a=(0, 0, 0),
        point_b=(0, 0, 0),
        stiffness=8.0,
        rest_length=1.0,
        tension_only=True,
        name="cable",
    )
    names = ["cable.stiffness", "cable.rest_length", "cable.damping"]
    motion = slide().simulate([0.0], [2.0], 1.0, forces=[cable], derivatives=names, save_at=[0.4, 1.0], **TIGHT)
    for name in names:
        assert not motion.derivatives[name][0].any()
    omega, t = np.sqrt(8.0 / 2.0), 1.0 - 0.5  # q = 1 + v / omega sin(omega t), with the time t since it is taut
    by_omega = 2.0 * (omega * t * np.cos(omega * t) - np.sin(omega * t)) / omega**2
    by_omega_of_speed = -2.0 * t * np.sin(omega * t)
    by_length = [1.0 - np.cos(omega * t), omega * np.sin(omega * t)]  # the cable is taut 1/v later
    by_stiffness = np.array([by_omega, by_omega_of_speed]) / (2.0 * omega * 2.0)
    np.testing.assert_allclose(motion.derivatives["cable.stiffness"][-1], by_stiffness, rtol=0, atol=1e-9)
    np.testing.assert_allclose(motion.derivatives["cable.rest_length"][-1], by_length, rtol=0, atol=1e-9)


def matrices():
    """Stiffness and damping of a bushing, with all entries."""
    rng = np.random.default_rng(4)
    roots = rng.normal(size=(2, 6, 6))
    K, D = roots @ np.swapaxes(roots, -1, -2)
    return {"stiffness": 3.0 * K + 5.0 * np.eye(6), "damping": 0.1 * D}


@pytest.mark.slow
@plain
def test_a_bushing_agrees_with_differences_along_a_change_of_its_matrices():
    """The sum over all entries of derivative times change is the derivative along the change."""
    model, given, duration = floating(rb.Spherical()), matrices(), 0.1
    turn = Rotation.from_rotvec([0.3, -0.2, 0.1]).as_matrix()
    ends = {"pose_a": rb.Pose((0.1, 0, 0.2), turn), "pose_b": rb.Pose((0, 0.4, -0.3))}
    q, qd = Rotation.from_rotvec([0.2, 0.3, -0.4]).as_quat(), np.array([1.0, -0.5, 0.7])
    names = ["mount.stiffness", "mount.damping"]
    motion = model.simulate(
        q,
        qd,
        duration,
        forces=[rb.Bushing(None, "body", **given, **ends, name="mount")],
        derivatives=names,
        save_at=2,
        **TIGHT,
    )
    weights, steps = np.array([3 / 4, -3 / 20, 1 / 60]), np.array([1.0, 2, 3, -1, -2, -3])
    change = np.random.default_rng(7).normal(size=(6, 6))
    change = change + change.T
    for field in given:
        h = 2e-3
        varied = given | {field: given[field] + h * steps[:, None, None] * change}
        ends_of = model.simulate(
            np.tile(q, (6, 1)), np.tile(qd, (6, 1)), duration,
            forces=[rb.Bushing(None, "body", **varied, **ends)], save_at=[duration], **TIGHT,
        )  # fmt: skip
        moves = np.concatenate([model.difference(motion.q[-1:], ends_of.q[:, -1]), ends_of.qd[:, -1]], -1)
        wanted = weights @ (moves[:3] - moves[3:]) / h
        found = motion.derivatives[f"mount.{field}"]
        assert found.shape == (2, 6, 6, 6)
        np.testing.assert_array_equal(found, np.swapaxes(found, -1, -2))
        assert np.abs(wanted).max() > 1e-3
        np.testing.assert_allclose((found[-1] * change).sum((-1, -2)), wanted, rtol=0, atol=1e-8, err_msg=field)


@pytest.mark.slow
@plain
def test_a_disk_on_a_bushing_agrees_with_the_matrix_exponential():
    """One entry of the matrices acts: J q'' = -k q - d q'."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("disk", joint=rb.Revolute((0, 0, 1)), inertia=rb.Inertia(1.0, inertia=(1, 1, 2)))
    K, D = np.diag([1e3, 1e3, 1e3, 1e2, 1e2, 8.0]), np.diag([0, 0, 0, 0, 0, 0.6])
    bushing = rb.Bushing("disk", None, stiffness=K, damping=D)
    names = ["disk-world.stiffness", "disk-world.damping"]
    motion = builder.build().simulate([0.3], [1.0], 1.0, forces=[bushing], derivatives=names, save_at=2, **TIGHT)

    def end(k, d):
        return expm(np.array([[0, 1], [-k / 2.0, -d / 2.0]])) @ [0.3, 1.0]

    for name, wanted in zip(names, (end(8 + 1e-20j, 0.6), end(8.0, 0.6 + 1e-20j)), strict=True):
        found = motion.derivatives[name][-1]
        np.testing.assert_allclose(found[:, 5, 5], wanted.imag / 1e-20, rtol=0, atol=1e-10)
        assert not np.delete(found.reshape(2, 36), 35, 1).any()


@pytest.mark.slow
@plain
def test_a_spring_in_a_closed_chain_agrees_with_differences():
    spring = rb.SpringDamper("x", "y", point_a=(0.1, 0.3, 0), point_b=(-0.2, 0.1, 0), **SPRING, name="cord")
    model, start = trammel(), slides_of([0.6, 1.1])
    names = [f"cord.{field}" for field in SPRING]
    motion = model.simulate(start[:2], start[2:], 0.2, forces=[spring], derivatives=names, save_at=2, **TIGHT)
    check_by_differences(model, start, 0.2, spring, SPRING, motion, "cord")


@plain
def test_events_batches_precisions_and_files(tmp_path):
    """Each sample has its own spring; the time of an event also has derivatives by its parameters."""
    springs = [rb.SpringDamper(None, "link2", **POINTS, **SPRING | {"stiffness": [20.0, 30.0]}, name="cord")]
    springs.append(rb.SpringDamper("link1", None, point_a=(0, 0, 0), point_b=(1.0, 1.0, 0), stiffness=1.0, name="b"))
    states = np.stack([START[:2], START[2:]])[:, None] * np.array([1.0, 0.5])[:, None]
    event = rb.Event("link1", quantity="velocity", max_records=1)
    settings = {"derivatives": ["cord.stiffness", "b.damping", "q"], "events": [event]} | FIXED
    model = two_links()
    motion = model.simulate(*states, 0.5, forces=springs, **settings)
    own = [spring.of_sample(1, (2,)) for spring in springs]
    single = model.simulate(*states[:, 1], 0.5, forces=own, **settings)
    rough = model.simulate(*states.astype(np.float32), 0.5, forces=springs, **settings)
    empty = model.simulate(*states[:, :0], 0.5, forces=springs[1:], **settings | {"derivatives": ["b.damping"]})
    motion.save(tmp_path / "motion.npz")
    loaded = rb.load_motion(tmp_path / "motion.npz")
    for name in ("cord.stiffness", "b.damping"):
        found = motion.derivatives[name]
        np.testing.assert_array_equal(motion[1].derivatives[name], single.derivatives[name])
        np.testing.assert_array_equal(loaded.derivatives[name], found)
        assert rough.derivatives[name].dtype == np.float32
        np.testing.assert_allclose(rough.derivatives[name], found, rtol=1e-3, atol=1e-3)
    assert empty.derivatives["b.damping"].shape == (0, *motion.derivatives["b.damping"].shape[1:])
    (record,) = motion.events
    assert record.derivatives_of_t["cord.stiffness"].shape == (2, 1)
    assert np.isfinite(record.derivatives_of_t["cord.stiffness"]).all()


@plain
@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["cord.pose_a_rotation"], "'cord' has no 'pose_a_rotation'; expected one of stiffness, damping, rest_length"),
        (["chord.stiffness"], "nothing named 'chord' has 'stiffness'.*did you mean cord"),
        (["world-link2.stiffness"], "matches 2 parameters; expected the path of one of .*Give each force another name"),
        (["mount.rest_length"], "'mount' has no 'rest_length'"),
    ],
)
def test_refused_names(names, message):
    springs = [rb.SpringDamper(None, "link2", **POINTS, **SPRING, name=name) for name in ("cord", None, None)]
    springs.append(rb.Bushing(None, "link1", **matrices(), name="mount"))
    with pytest.raises(rb.ArgumentError, match=message):
        two_links().simulate(START[:2], START[2:], 0.1, forces=springs, derivatives=names, save_at=2)


def wall(stiffness, damping, rest_length=0.4):
    """A spring from a wall to a slide."""
    return rb.SpringDamper(
        *(None, "slide"),
        **{"point_a": (-1, -1, -1), "point_b": (0, 0, 0), "name": "wall"},
        **{"stiffness": stiffness, "damping": damping, "rest_length": rest_length},
    )


@pytest.mark.slow
@plain
def test_a_fit_finds_the_spring_of_a_motion():
    t = np.linspace(0, 1, 6)
    true = slide().simulate([0.1], duration=1.0, forces=[wall(7.0, 0.8)], save_at=t)
    second = slide().simulate([0.3], [0.5], duration=1.0, forces=[wall(7.0, 0.8)], save_at=t)
    guess = [wall(5.0, 1.0)]
    fit = rb.fit(
        *(slide(), [true, second], ["wall.stiffness", "wall.damping", "wall.rest_length"]),
        **{"forces": guess, "noise": 1e-4, "starts": 1, "bounds": {"wall.stiffness": (1.0, 20.0)}},
        priors={"wall.rest_length": (0.4, 0.1)},
    )
    assert fit.success, fit.message
    assert fit.units == {"wall.stiffness": "N/m", "wall.damping": "N s/m", "wall.rest_length": "m"}
    for name, value in {"stiffness": 7.0, "damping": 0.8, "rest_length": 0.4}.items():
        np.testing.assert_allclose(fit.values[f"wall.{name}"], value, rtol=1e-5)
        np.testing.assert_allclose(getattr(fit.forces[0][0], name), value, rtol=1e-5)
    again = slide().simulate([0.1], duration=1.0, forces=fit.forces[0], save_at=t)
    np.testing.assert_allclose(again.q, true.q, rtol=0, atol=1e-6)
    assert fit.model.mass == slide().mass


@plain
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"parameters": ["wall.point_a"]}, "a point or a pose of a force, which fit does not support"),
        ({"forces": [wall(5.0, 0.0)], "parameters": ["wall.damping"]}, "is zero and therefore stays fixed"),
        ({"forces": [wall([5.0, 6.0], 0.0)]}, r"wall.stiffness has shape \(2,\)"),
        ({"forces": [wall(5.0, 0.0), wall(6.0, 0.0)]}, "matches 2 parameters; expected one. Give each force another"),
        ({"forces": [rb.Bushing(None, "slide", stiffness=np.eye(6), name="wall")]}, "a matrix of a Bushing"),
        ({"forces": ()}, "is not the path of a parameter"),
    ],
)
def test_refused_fits(given, message):
    motion = [0.0, 1.0], [[0.1], [0.2]], None
    arguments = {"parameters": ["wall.stiffness"], "forces": [wall(5.0, 0.5)]} | given
    with pytest.raises(rb.ArgumentError, match=message):
        rb.fit(slide(), motion, **arguments)
    own = rb.Measurement(*motion, forces=[wall(7.0, 0.5)])
    with pytest.raises(rb.ArgumentError, match="have different initial guesses"):
        rb.fit(slide(), [rb.Measurement(*motion), own], ["wall.stiffness"], forces=[wall(5.0, 0.5)])
