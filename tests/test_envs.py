"""Vector environments behave as gymnasium's SyncVectorEnv of environments with one sample each."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import rbchain as rb
from rbchain.envs import VectorEnv, cart_pole, reacher

plain = pytest.mark.plain_python
N, LIMIT, STEP = 3, 5, 2.0**-4
BOX = gymnasium.spaces.Box(-50.0, 50.0, (1,), np.float64)


def slides(n):
    builder = rb.ModelBuilder()
    builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=1.0))
    at_end = rb.Event("slide", value=-0.3, direction=-1, stop=True)
    return builder.build().stepper(np.zeros((n, 1)), step=STEP, events=[at_end], on_failure="ignore")


def begin(stepper, samples, rng):
    stepper.reset(samples, q=0.01 * (1.0 + stepper.episodes[samples, None]))


FUNCTIONS = {
    "observe": lambda s: np.concatenate([s.q, s.qd], -1),
    "reward": lambda s, actions: s.q[:, 0] - 1e-3 * np.nan_to_num(actions[:, 0]),
    "ends": lambda s: s.q[:, 0] > 0.3,
    "begin": begin,
    "info": lambda s: {"speed": np.abs(s.qd[:, 0])},
}


class OneSlide(gymnasium.Env):
    """An environment of one sample, written as gymnasium's documentation describes it."""

    def __init__(self):
        self.stepper = slides(1)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.action_space = BOX

    def _info(self):
        return {"speed": np.float64(abs(self.stepper.qd[0, 0]))}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        begin(self.stepper, [0], self.np_random)
        self.count = 0
        return FUNCTIONS["observe"](self.stepper)[0], self._info()

    def step(self, action):
        self.stepper.tau[0] = action
        self.stepper.step()
        self.count += 1
        status = rb.Status(self.stepper.status[0])
        info = self._info() | ({} if status.success else {"status": int(status)})
        reward = FUNCTIONS["reward"](self.stepper, action[None])[0]
        terminated = bool(FUNCTIONS["ends"](self.stepper)[0]) or status == rb.Status.STOPPED
        truncated = self.count >= LIMIT or not status.success
        return FUNCTIONS["observe"](self.stepper)[0], reward, terminated, truncated, info


def check_same(a, b):
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            check_same(a[key], b[key])
    elif a.dtype == object:
        assert b.dtype == object
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)
    else:
        np.testing.assert_array_equal(a, b)


@plain
@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)
def test_a_vector_environment_does_as_environments_of_one_sample(mode):
    ours = VectorEnv(slides(N), **FUNCTIONS, max_episode_steps=LIMIT, action_space=BOX, autoreset_mode=mode)
    theirs = SyncVectorEnv([OneSlide] * N, autoreset_mode=mode)
    assert ours.single_observation_space == theirs.single_observation_space
    assert (ours.observation_space, ours.action_space) == (theirs.observation_space, theirs.action_space)
    assert ours.metadata["autoreset_mode"] is mode
    rng, seen = np.random.default_rng(2), set()
    for a, b in zip(ours.reset(seed=5), theirs.reset(seed=5), strict=True):
        check_same(*((a, b) if isinstance(a, dict) else (np.asarray(a), np.asarray(b))))
    for k in range(24):
        actions = np.array([[4.0], [-8.0], [0.5]]) * rng.uniform(0.5, 1.5, (N, 1))
        if k == 9:
            actions[2] = np.nan  # the sample fails
        a, b = ours.step(actions), theirs.step(actions)
        for x, y in zip(a, b, strict=True):
            check_same(x, y)
        seen |= ({"terminated"} if a[2].any() else set()) | ({"truncated"} if a[3].any() else set())
        seen |= {"failed"} if "status" in (a[4] | a[4].get("final_info", {})) else set()
        ended = a[2] | a[3]
        if mode is AutoresetMode.DISABLED and ended.any():
            with pytest.raises(rb.ArgumentError, match=r"episodes of environments .* have ended"):
                ours.step(actions)
            for x, y in zip(
                ours.reset(options={"reset_mask": ended}), theirs.reset(options={"reset_mask": ended}), strict=True
            ):
                check_same(x, y)
    assert seen == {"terminated", "truncated", "failed"}


class OneCartPole(gymnasium.Env):
    """The only environment of a batch of one."""

    def __init__(self):
        self.envs = gymnasium.make_vec("rbchain/CartPoleSwingUp-v0", num_envs=1, autoreset_mode="Disabled")
        self.observation_space, self.action_space = self.envs.single_observation_space, self.envs.single_action_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        observations, infos = self.envs.reset(seed=seed, options=options)
        return observations[0], infos

    def step(self, action):
        observations, rewards, terminations, truncations, infos = self.envs.step(action[None])
        return observations[0], float(rewards[0]), bool(terminations[0]), bool(truncations[0]), infos


@plain
@pytest.mark.filterwarnings("ignore:.*Box observation space m.* value is")  # the space has no bounds
@pytest.mark.filterwarnings("ignore:.*use a symmetric and normalized space")
@pytest.mark.filterwarnings("ignore:.*not within a wrapper")
def test_the_checker_of_gymnasium_accepts_the_cart_pole():
    check_env(OneCartPole(), skip_render_check=True)


@plain
def test_the_cart_pole_obeys_its_equations_of_motion():
    rng = np.random.default_rng(0)
    q, qd, force = rng.normal(size=(50, 2)), rng.normal(size=(50, 2)), rng.normal(size=50)
    acceleration, angular = cart_pole().forward_dynamics(q, qd, np.stack([force, 0.0 * force], -1)).T
    cart, pole, half, g = 1.0, 0.1, 0.5, 9.81
    sine, cosine = np.sin(q[:, 1]), np.cos(q[:, 1])
    inertial = (cart + pole) * acceleration + pole * half * (angular * cosine - qd[:, 1] ** 2 * sine)
    np.testing.assert_allclose(inertial, force, rtol=0, atol=1e-13)
    np.testing.assert_allclose(4.0 / 3.0 * half * angular + acceleration * cosine, g * sine, rtol=0, atol=1e-13)


@pytest.mark.slow
@plain
def test_the_reacher_draws_payloads_and_repeats_episodes_with_a_seed():
    envs = reacher(num_envs=2, max_episode_steps=2)
    actions = np.random.default_rng(0).uniform(-1.0, 1.0, (4, 2, 7))
    runs = []
    for _ in range(2):
        run = [envs.reset(seed=7)]
        run += [envs.step(action) for action in actions]
        runs.append(run)
    assert data_equivalence(*runs, exact=True)
    first, last = runs[0][0][1]["payload"], runs[0][-1][-1]["payload"]  # of the first and the second episode
    assert (first != last).all()
    mass = envs.stepper.model.mass[:, -1] - envs.stepper.model.nominal.mass[-1]
    np.testing.assert_allclose(mass, last, rtol=1e-12)
    observations, rewards = runs[0][2][0], runs[0][2][1]  # the vector to the target has the noise of the encoders
    np.testing.assert_allclose(np.linalg.norm(observations[:, 14:], axis=1), -rewards, atol=5e-3)
    assert runs[0][2][3].all()


@plain
def test_functions_that_return_wrong_arrays_are_named():
    def envs(**changed):
        return VectorEnv(slides(N), **(FUNCTIONS | changed))

    with pytest.raises(rb.ArgumentError, match=r"observe returned an array of shape \(2,\)"):
        envs(observe=lambda s: np.zeros(2))
    with pytest.raises(rb.ArgumentError, match=r"observe returned \[nan, 0.0\] for sample 1, whose state is finite"):
        envs(observe=lambda s: np.where(np.arange(N)[:, None] == 1, [np.nan, 0.0], s.q))
    wrong = envs(reward=lambda s, actions: np.zeros((N, 1)))
    with pytest.raises(gymnasium.error.ResetNeeded):
        wrong.step(np.zeros((N, 1)))
    wrong.reset()
    with pytest.raises(rb.ArgumentError, match=r"actions has shape \(2, 1\); expected \(3, 1\)"):
        wrong.step(np.zeros((2, 1)))
    with pytest.raises(rb.ArgumentError, match=r"reward returned an array of shape \(3, 1\); expected \(3,\)"):
        wrong.step(np.zeros((N, 1)))
    with pytest.raises(rb.ArgumentError, match="reset_mask has shape"):
        wrong.reset(options={"reset_mask": np.zeros(N, bool)})
    with pytest.raises(rb.ArgumentError, match=r"stepper is of batch shape \(\); expected a stepper of a batch"):
        VectorEnv(rb.Model.serial_chain(1).stepper([0.0], step=STEP), **FUNCTIONS)
    with pytest.raises(rb.ArgumentError, match=r"autoreset_mode is 'Nextstep'; .*did you mean NextStep"):
        envs(autoreset_mode="Nextstep")
