"""Run a case in a world, and in the ways to run it."""

import contextlib
import dataclasses
import pickle

import numpy as np

import rbchain as rb

from .actions import drives, forces
from .cases import FIXED_STEPS
from .mechanisms import MECHANISMS
from .worlds import World

TOLERANCE = {"float64": 1e-9, "float32": 1e-5}
STEPS = 50  # of fixed length in a motion; the periods and delays of controllers are multiples of the steps
TIMES = 6
SAMPLES = np.array([1.0, 1.1, 0.9])  # factors of the masses


class Setup:
    """The mechanism, drives and forces of a case in a world, and the settings of its simulation."""

    def __init__(self, case, world=None):
        self.case = case
        self.mechanism = MECHANISMS[case.mechanism](world or World())
        self.model = self.mechanism.model
        self.drives, self.forces = drives(case.drive, self.mechanism), forces(case.force, self.mechanism)
        self.dtype = np.dtype(case.precision)

    def drives_of(self, sample):
        """The drives of one sample of a batch, whose sensors have the noise of this sample."""
        return drives(self.case.drive, self.mechanism, sample)

    def settings(self, method=None, refinement=1):
        """Settings of a method; `refinement` divides the step or the tolerances."""
        method = method or self.case.method
        actions = {"drives": self.drives, "forces": self.forces, "method": method, "save_at": TIMES}
        if method in FIXED_STEPS:
            return actions | {"step": self.mechanism.duration / (STEPS * refinement)}
        tolerance = TOLERANCE[self.case.precision] / refinement
        return actions | {"rtol": tolerance, "atol": 0.01 * tolerance}

    def state(self, batch=()):
        states = (self.mechanism.q, self.mechanism.qd)
        return [np.broadcast_to(x, (*batch, x.size)).astype(self.dtype) for x in states]

    def simulate(self, model=None, batch=(), **settings):
        given = self.settings() | settings
        return (model or self.model).simulate(*self.state(batch), self.mechanism.duration, **given)

    def reference(self, method):
        """An accurate motion with another method, in float64."""
        given = self.settings(method) | {"rtol": 1e-11, "atol": 1e-12}
        return self.model.simulate(self.mechanism.q, self.mechanism.qd, self.mechanism.duration, **given)

    def varied(self, factors=SAMPLES):
        """One sample for each factor of the masses."""
        return self.model.vary(mass=self.model.mass * np.asarray(factors)[:, None])

    def study(self):
        """The samples of `varied` as a study with a table of factors as its design."""
        given = self.settings()
        simulation = {name: given[name] for name in ("method", "step", "rtol", "atol") if name in given}
        simulation |= {"duration": self.mechanism.duration, "save_at": given["save_at"]}
        simulation |= {"q": list(self.mechanism.q), "qd": list(self.mechanism.qd)}
        factor = {"type": "discrete", "values": list(SAMPLES), "probabilities": [0.4, 0.3, 0.3]}
        return rb.Study(
            model=self.model,
            samples=3,
            seed=5,
            drives=self.drives,
            forces=self.forces,
            vary={"*.mass": rb.Dispersion(factor, how="multiply", shared=True)},
            simulate=simulation,
            outputs={"motion": True},
            measures=[{"name": "final", "quantity": "velocity", "joint": self.mechanism.world.name("tool")}],
        )


def check_bits(found, expected):
    """Whether two motions agree to the last bit."""
    for name in ("q", "qd", "tau"):
        assert getattr(found, name).tobytes() == getattr(expected, name).tobytes(), name
    assert np.array_equal(found.status, expected.status)


def run_single(setup, folder):
    """A single state agrees with the batch of one to round-off, also where the lanes of the batch are compiled."""
    single, batch = setup.simulate(), setup.simulate(batch=(1,))
    scale = 1.0 + np.abs(batch.qd).max()
    error = 100 * max(1, int(batch.steps[0])) * np.finfo(setup.dtype).eps * scale
    tolerance = setup.settings().get("rtol", 0.0) * scale  # round-off can change the length of a step
    np.testing.assert_allclose(single.q, batch.q[0], rtol=0, atol=error + tolerance)
    return single


def run_varied(setup, folder):
    many = setup.varied()
    motion = setup.simulate(many, (3,))
    for k in range(3):
        alone = setup.simulate(setup.varied(SAMPLES[k : k + 1]), (1,), drives=setup.drives_of(k))
        check_bits(alone[0], motion[k])
    return motion[0]


def run_empty(setup, folder):
    motion = setup.simulate(setup.varied([]), (0,))
    assert motion.q.shape == (0, TIMES, setup.model.nq)
    assert motion.tau.shape == motion.qd.shape == (0, TIMES, setup.model.nv)
    assert motion.success
    return setup.simulate()


def of_study(setup, results):
    """Compare the stored motions of a study with the same samples in one call."""
    factors = results.parameters.values[:, 0]
    motion = setup.simulate(setup.varied(factors), (len(factors),))
    assert np.array_equal(results.q.values, motion.q)
    assert np.array_equal(results.qd.values, motion.qd)
    return setup.simulate()


def run_study(setup, folder):
    return of_study(setup, setup.study().run(chunk=2))


class Interruption(Exception):
    """Ends a study after its first chunk."""


def run_resumed_study(setup, folder):
    def interrupt(count, statistics):
        if count:
            raise Interruption

    study = setup.study()
    with contextlib.suppress(Interruption):
        study.run(folder / "study", chunk=1, progress=interrupt)
    return of_study(setup, setup.study().run(folder / "study", chunk=1))


def run_saved(setup, folder):
    motion = setup.simulate(batch=(1,))
    motion.save(folder / "motion.npz")
    loaded = rb.load_motion(folder / "motion.npz")
    check_bits(loaded, motion)
    again = setup.simulate(loaded.model, (1,))
    check_bits(again, motion)
    return motion[0]


def run_pickled(setup, folder):
    motion = setup.simulate(batch=(1,))
    check_bits(setup.simulate(pickle.loads(pickle.dumps(setup.model)), (1,)), motion)
    return motion[0]


def run_of_sample(setup, folder):
    many = setup.varied()
    motion = setup.simulate(many, (3,))
    alone = setup.simulate(many[1], (1,), drives=setup.drives_of(1))
    check_bits(alone[0], motion[1])
    return motion[0]


def run_with_sensitivities(setup, folder):
    """The derivatives by masses, a placement and a parameter of a user function, compared with central differences."""
    increment = np.finfo(setup.dtype).eps ** (1 / 3)
    factors = 1 + increment, 1 - increment
    has_function, places = setup.case.drive == "UserForces", setup.model.placement_translation
    has_geometry = not (setup.model.constraint_names or setup.model.in_water)
    last = f"{setup.model.joint_names[-1]}.placement_translation"
    names = ["mass", *[last] * has_geometry, *["hold.parameters"] * has_function]
    motion = setup.simulate(derivatives=names)
    pairs = [
        (motion.derivatives["mass"][-1] @ setup.model.mass, [setup.simulate(setup.varied([x]), (1,)) for x in factors])
    ]
    if has_geometry:
        changes = [np.where(np.arange(len(places))[:, None] == len(places) - 1, x, 1.0) for x in factors]
        models = [setup.model.vary(placement_translation=places[None] * change) for change in changes]
        found = motion.derivatives[last][-1] @ places[-1]
        pairs.append((found, [setup.simulate(model, (1,)) for model in models]))
    if has_function:
        (force,) = setup.drives
        numbers = np.array(force.parameters)
        drives = [[dataclasses.replace(force, parameters=numbers * [1, 1, x])] for x in factors]
        found = motion.derivatives["hold.parameters"][-1, :, 2] * numbers[2]
        pairs.append((found, [setup.simulate(batch=(1,), drives=changed) for changed in drives]))
    error = (setup.settings().get("rtol", 0.0) + np.finfo(setup.dtype).eps) * STEPS / increment
    for found, ends in pairs:
        q = setup.model.difference(ends[1].q[0, -1], ends[0].q[0, -1]) / (2 * increment)
        qd = (ends[0].qd[0, -1] - ends[1].qd[0, -1]) / (2 * increment)
        expected = np.concatenate([q, qd])
        np.testing.assert_allclose(found, expected, rtol=0, atol=error * (1 + np.abs(motion.qd).max()))
    return motion


WAYS_TO_RUN = {
    "single state": run_single,
    "varied batch": run_varied,
    "empty batch": run_empty,
    "study in chunks": run_study,
    "resumed study": run_resumed_study,
    "saved and loaded": run_saved,
    "pickled": run_pickled,
    "of_sample": run_of_sample,
    "sensitivities": run_with_sensitivities,
    "plain Python": lambda setup, folder: setup.simulate(),  # see test_compiled_code_agrees_with_plain_python
}
