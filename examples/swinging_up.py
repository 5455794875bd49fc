"""Learn to swing up a pole on a cart by random search over linear policies, one policy for each sample of a batch.

Writes swinging_up.png, the learning curve and the swing, and swinging_up.html, an animation of the swing.

    python swinging_up.py [policies] [generations] [seconds of an episode]
"""

import sys

import gymnasium
import numpy as np
from matplotlib.figure import Figure

import rbchain as rb
import rbchain.envs

policies, generations, seconds = (float(given) for given in (*sys.argv[1:], *(256, 20, 10)[len(sys.argv) - 1 :]))
PERIOD, FORCE, ELITE = 0.02, 10.0, 16  # s, N, and the policies per survivor
policies, steps = int(policies), round(seconds / PERIOD)
rng = np.random.default_rng(0)


def features_of(observations):
    """Return what a policy sees (n, 7): the state near the top, and elsewhere the cart and the energy to the top."""
    x, xd, cosine, sine, rate = observations.T
    near_top, energy = np.maximum(cosine, 0.0) ** 4, rate**2 / (3.0 * 9.81) + cosine - 1.0
    balance = near_top * np.array([x, xd, sine, rate])
    return np.stack([*balance, *((1.0 - near_top) * np.array([x, xd, energy * rate * cosine]))], -1)


def force_of(weights, observations):
    """Return actions (n, 1) of linear policies (n, 7) with these observations."""
    return np.tanh((weights * features_of(observations)).sum(-1, keepdims=True))


envs = gymnasium.make_vec("rbchain/CartPoleSwingUp-v0", num_envs=policies, max_episode_steps=steps)
envs.reset(seed=0)
mean, spread, curve = np.zeros(7), np.full(7, 5.0), []
for _ in range(int(generations)):
    weights = mean + spread * rng.normal(size=(policies, 7))
    observations, _ = envs.reset()
    returns, runs = np.zeros(policies), np.ones(policies, bool)
    for _ in range(steps):
        observations, rewards, terminations, truncations, _ = envs.step(force_of(weights, observations))
        returns += runs * rewards / steps
        runs &= ~(terminations | truncations)
    best = weights[np.argsort(returns)[-max(2, policies // ELITE) :]]
    mean, spread = best.mean(0), best.std(0) + 0.1
    curve.append((returns.mean(), returns.max()))
print(f"mean reward of the last {policies} policies: {curve[-1][0]:.3f}, of the best one: {curve[-1][1]:.3f}")


def controller(t, q, qd, parameters):
    """The mean policy as a digital controller in plain Python."""
    observations = np.stack([q[:, 0], qd[:, 0], np.cos(q[:, 1]), np.sin(q[:, 1]), qd[:, 1]], -1)
    return np.concatenate([FORCE * force_of(mean, observations), np.zeros((len(q), 1))], -1)


drives = [rb.Sampled(rb.UserForces(controller), period=PERIOD)]
swing = rbchain.envs.cart_pole().simulate(
    [[0.0, 3.1]], duration=seconds, method="rk4", step=0.01, drives=drives, save_every=PERIOD
)
print(f"the pole is upright for {PERIOD * (np.cos(swing.q[0, :, 1]) > 0.95).sum():.1f} of {seconds:g} s")
swing.film("swinging_up.html", fps=15)

figure = Figure(figsize=(8, 3.2), layout="constrained")
left, right = figure.subplots(1, 2)
left.plot(np.array(curve), label=["mean", "best"])
left.set(xlabel="generation", ylabel="reward per step", ylim=(0.0, 1.0))
left.legend()
right.plot(swing.t, np.cos(swing.q[0, :, 1]), label="cos(angle)", color="#1f5a99")
right.plot(swing.t, swing.q[0, :, 0], label="cart (m)", color="#e0702a")
right.set(xlabel="time (s)")
right.legend()
figure.savefig("swinging_up.png")
