"""Random simulations: drives, forces and events, and checks of every motion."""

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import rbchain as rb

from ..quantities import in_quaternions

#: Numbers that make a sample fail, or that it tolerates.
HAZARDS = (np.nan, np.inf, -np.inf, 1e300, -1e300, 1e155, 1e20, -1e8, 1e4, 1e-300, 5e-324, 0.0, -0.0)


class Motion(NamedTuple):
    """Arguments of `simulate`: the model, the states, and the settings by name."""

    model: Any
    q: np.ndarray
    qd: np.ndarray
    settings: dict[str, Any]

    def simulate(self):
        return self.model.simulate(self.q, self.qd, **({"on_failure": "ignore"} | self.settings))


def signals(draw, seed, batch):
    """A number, one for each sample, a polynomial, sines, or a smooth table."""
    rng = np.random.default_rng(seed)
    kind = draw(st.sampled_from(("number", "of samples", "polynomial", "sines", "table")), label="signal")
    if kind == "number":
        return rng.normal()
    if kind == "of samples":
        return rng.normal(size=batch)
    if kind == "polynomial":
        return rb.Signal.polynomial(rng.normal(size=(*batch, 3)))
    if kind == "sines":
        return rb.Signal.sines(rng.normal(size=2), rng.uniform(0, 20, 2), phase=rng.normal(size=2), offset=rng.normal())
    return rb.Signal.table(np.linspace(0.0, 2.0, 6), rng.normal(size=(*batch, 6)))


def drives(draw, model, batch):
    """A drive for some of the degrees of freedom."""
    found = []
    ends = [*model.velocity_index[1:], model.nv]
    for name, kind, first, end in zip(model.joint_names, model.joint_types, model.velocity_index, ends, strict=True):
        for dof in range(end - first):
            what = draw(st.sampled_from((None, None, None, *rb_drives(kind))), label=f"drive of {name}")
            if what is None:
                continue
            signal = signals(draw, int(first) + dof, batch)
            if what in (rb.PID, rb.ComputedTorque):
                found.append(what(name, signal, kp=20.0, kd=2.0, ki=draw(st.sampled_from((0.0, 1.0))), dof=dof))
            else:
                found.append(what(name, signal, dof=dof))
    return found


def rb_drives(kind):
    """The drives that a joint of this type may have: some need a coordinate."""
    of_any = (rb.PrescribedForce, rb.PrescribedAcceleration, rb.PrescribedVelocity)
    return of_any if kind in ("free", "spherical") else (*of_any, rb.PrescribedPosition, rb.PID, rb.ComputedTorque)


def forces(draw, model, batch):
    """Up to two wrenches, and a current where there is water."""
    found = []
    for i in range(draw(st.integers(0, 2), label="wrenches")):
        body = draw(st.sampled_from(model.body_names), label="body")
        force = [signals(draw, 100 * i + axis, batch) for axis in range(3)]
        axes = draw(st.sampled_from(("world", "body")), label="axes")
        found.append(rb.Wrench(body, force=force, moment=(0.1, 0.0, -0.1), point=(0.1, 0.2, 0.3), axes=axes))
    if model.in_water and draw(st.booleans(), label="current"):
        found.append(rb.Current((0.2, rb.Signal.sines(0.3, 4.0), 0.0)))
    return found


def forces_between_bodies(draw, model, batch):
    """Up to two springs, cables or bushings between bodies, or to the world."""
    found = []
    for i in range(draw(st.integers(0, 2), label="forces between bodies")):
        rng = np.random.default_rng(i)
        b = draw(st.sampled_from(model.body_names), label="body b")
        a = draw(st.sampled_from([None, *(name for name in model.body_names if name != b)]), label="body a")
        if draw(st.booleans(), label="is a spring"):
            stiffness = rng.uniform(0, 50, draw(st.sampled_from(((), batch)), label="samples"))
            tension_only = draw(st.booleans(), label="tension only")
            points = dict(zip(("point_a", "point_b"), rng.normal(size=(2, 3)), strict=True))
            numbers = {"stiffness": stiffness, "damping": 1.0, "rest_length": 0.5, "tension_only": tension_only}
            found.append(rb.SpringDamper(a, b, **points, **numbers))
        else:
            root = rng.normal(size=(6, 6))
            found.append(
                rb.Bushing(a, b, stiffness=root @ root.T, damping=np.eye(6), pose_a=rb.Pose(rng.normal(size=3)))
            )
    return found


def events(draw, model):
    """Up to two events."""
    joints = [name for name, kind in zip(model.joint_names, model.joint_types, strict=True)]
    found = []
    for _ in range(draw(st.integers(0, 2), label="events")):
        name = draw(st.sampled_from(joints), label="joint")
        kind = model.joint_types[joints.index(name)]
        of = (
            "velocity" if kind in ("free", "spherical") else draw(st.sampled_from(("position", "velocity")), label="of")
        )
        value = draw(st.sampled_from((0.0, 0.1, -0.5)), label="value")
        stop, most = draw(st.booleans(), label="stop"), draw(st.sampled_from((1, 3)), label="most")
        found.append(rb.Event(name, value=value, quantity=of, dof=0, stop=stop, max_records=most))
    return found


def methods(draw, duration, steps):
    """The settings of one of the methods; adaptive steps give up after `steps`."""
    method = draw(st.sampled_from(("rk45", "rk4", "implicit")), label="method")
    if method == "rk45":
        return {"method": method, "rtol": draw(st.sampled_from((1e-3, 1e-6)), label="rtol"), "max_steps": steps}
    return {"method": method, "step": duration / draw(st.integers(1, 4), label="steps")}


def motions(draw, model, batch, duration, steps, dtype=np.float64, springs=False):
    """A motion of a model with anything that may act on it; forces between bodies if `springs` is true."""
    q, qd = model.random_state(draw(st.integers(0, 99), label="state"), batch)
    acting = drives(draw, model, batch)
    return motion_under(draw, model, (q, qd), acting, duration, steps, dtype, springs)


def motion_under(draw, model, state, acting, duration, steps, dtype, springs):
    """A motion from a state under these drives."""
    q, qd = state
    batch = qd.shape[:-1]
    tau = 0.0 if acting else np.random.default_rng(0).normal(size=qd.shape).astype(dtype)
    save_at = draw(st.sampled_from((None, 2, 5, [0.3 * duration, 0.31 * duration], [duration])), label="save_at")
    loads = forces(draw, model, batch) + (forces_between_bodies(draw, model, batch) if springs else [])
    settings = {"duration": duration, "drives": acting, "forces": loads, "tau": tau}
    settings |= {"events": events(draw, model), "save_at": save_at, **methods(draw, duration, steps)}
    return Motion(model, q.astype(dtype), qd.astype(dtype), settings)


def imposed(motion, where):
    """Mark the entries of a state that cannot be replaced freely: quaternions and prescribed coordinates."""
    model = motion.model
    found = in_quaternions(model) if where == "q" else np.zeros(model.nv, bool)
    for drive in motion.settings["drives"]:
        if isinstance(drive, (rb.PrescribedPosition, rb.PrescribedVelocity)):
            dof = model.velocity_index[model.joint_names.index(drive.joint)] + drive.dof
            if where == "qd":
                found[dof] = True
            elif isinstance(drive, rb.PrescribedPosition):
                found[next(at for at, of in model.coordinate_pairs if of == dof)] = True
    return found


def with_hazard(draw, motion, sample):
    """Replace a number of one sample in its state or its joint forces."""
    where = draw(st.sampled_from(("q", "qd", "tau")), label="hazard in")
    if where == "tau" and motion.settings["drives"]:
        where = "qd"
    given = motion.settings["tau"] if where == "tau" else getattr(motion, where)
    changed = np.array(given)
    allowed = np.flatnonzero(~imposed(motion, where))
    if allowed.size == 0:
        return motion
    entry = draw(st.sampled_from(allowed.tolist()), label="entry")
    with np.errstate(over="ignore"):  # float32 has no 1e300
        changed[(*sample, entry)] = changed.dtype.type(draw(st.sampled_from(HAZARDS), label="hazard"))
    if where == "tau":
        return motion._replace(settings=motion.settings | {"tau": changed})
    return motion._replace(**{where: changed})


# --- what must hold ---------------------------------------------------------------------------------------------------


def check_ends(motion, found):
    """Check that each sample ends with a status within the duration, and is NaN only after its end."""
    model, duration = motion.model, motion.settings["duration"]
    for sample in np.ndindex(found.status.shape):
        status, end = rb.Status(int(found.status[sample])), float(found.end_time[sample])
        q, qd = found.q[sample], found.qd[sample]
        assert 0.0 <= end <= duration
        assert end == duration or status is not rb.Status.DONE
        reached = found.t <= end
        for states, last in ((q, found.end_q[sample]), (qd, found.end_qd[sample])):  # an event holds its state
            expected = last if status is rb.Status.STOPPED else np.full_like(last, np.nan)
            np.testing.assert_array_equal(states[~reached], np.broadcast_to(expected, states[~reached].shape))
        given = np.concatenate([motion.q[sample], motion.qd[sample]])
        if status is rb.Status.NOT_ASSEMBLED and end == 0.0:  # states that are finite, but not closed, become NaN, too
            assert np.isnan(q[1:]).all()
            continue
        if np.isfinite(given).all():
            assert np.isfinite(q[reached]).all()
            assert np.isfinite(qd[reached]).all()
            assert np.isfinite(found.end_q[sample]).all()
            assert np.isfinite(found.end_qd[sample]).all()
        else:
            assert not status.success
            assert end == 0.0
        for at in model.kernel_model.dofs.quaternions:
            length = np.linalg.norm(q[reached, at : at + 4], axis=-1)
            np.testing.assert_allclose(length, 1.0, rtol=0, atol=8 * np.finfo(q.dtype).eps)
        if status is rb.Status.DONE and found.t[-1] == duration:
            # normalization of quaternions rounds, and prescribed coordinates are saved to the last bit
            rounding = 4 * np.finfo(q.dtype).eps
            np.testing.assert_allclose(found.end_q[sample], q[-1], rtol=rounding, atol=rounding)
    assert found.success == bool(np.isin(found.status, [rb.Status.DONE, rb.Status.STOPPED]).all())
    lines = [line for line in found.message.splitlines() if "The system is stiff" not in line]
    assert len(found.message.splitlines()) == len(lines) + found.is_stiff.any()
    assert sum(int(line.split(" of ")[0]) for line in lines) == found.status.size


def check_events(found):
    """Check that event times increase within the motion, and that their number is the count, up to `max_records`."""
    for record in found.events:
        times = record.t.reshape(-1, record.t.shape[-1])
        for count, of_sample, end in zip(record.count.reshape(-1), times, found.end_time.reshape(-1), strict=True):
            kept = min(int(count), of_sample.size)
            assert (np.diff(of_sample[:kept]) >= 0.0).all()
            assert ((of_sample[:kept] >= 0.0) & (of_sample[:kept] <= end)).all()
            assert np.isnan(of_sample[kept:]).all()


def check_same(one, other, samples):
    """Check that some samples have the same motions and drive forces to the last bit."""
    for name in (
        "q",
        "qd",
        "status",
        "steps",
        "rejections",
        "evaluations",
        "end_time",
        "end_q",
        "end_qd",
        "tau",
        "qdd",
    ):
        np.testing.assert_array_equal(getattr(one, name)[samples], getattr(other, name)[samples], err_msg=name)
    for record, same in zip(one.events, other.events, strict=True):
        np.testing.assert_array_equal(record.count[samples], same.count[samples])
        np.testing.assert_array_equal(record.t[samples], same.t[samples])


def check_a_hazard(draw, clean, batch):
    """Check that a bad number in one sample gives it a status and does not change others. Return the changed motion."""
    sample = draw(st.tuples(*(st.integers(0, size - 1) for size in batch)), label="sample")
    spoilt = with_hazard(draw, clean, sample)
    found, expected = spoilt.simulate(), clean.simulate()
    for motion, result in ((spoilt, found), (clean, expected)):
        check_ends(motion, result)
        check_events(result)
    others = np.ones(batch, bool)
    others[sample] = False
    check_same(found, expected, others)
    return spoilt, found
