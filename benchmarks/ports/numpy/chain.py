"""Forward dynamics and simulation of batches of trees, after Featherstone (2008), section 7.3.

    python chain.py PROBLEM RESULT        # ../README.md describes the two files

Three sweeps compute the kinematics (outward), the articulated inertias (inward) and the accelerations (outward). The
force balance of each body checks the result. All vectors are in world axes. The spatial quantities of a body, angular
before linear, refer to the origin of its joint. The first axis of each array is the batch.
"""

import sys
import time
from pathlib import Path

import numpy as np

REVOLUTE, PRISMATIC, SCREW = 0, 1, 2

# Dormand and Prince (1980): the stages' rows, and the weights of the error.
STAGES = [
    [1 / 5],
    [3 / 40, 9 / 40],
    [44 / 45, -56 / 15, 32 / 9],
    [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
    [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
]
ERROR = [71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40]


def cross_matrix(v):
    """[v x], (batch, 3, 3)."""
    matrix = np.zeros((len(v), 3, 3))
    matrix[:, 2, 1], matrix[:, 0, 2], matrix[:, 1, 0] = v.T
    return matrix - matrix.transpose(0, 2, 1)


def turn(angle):
    """Rotation about z by angles (batch,)."""
    R = np.zeros((len(angle), 3, 3))
    R[:, 0, 0] = R[:, 1, 1] = np.cos(angle)
    R[:, 1, 0] = np.sin(angle)
    R[:, 0, 1] = -R[:, 1, 0]
    R[:, 2, 2] = 1
    return R


def cross(a, b):
    """a x b of vectors (batch, 3); np.cross takes several times longer."""
    (ax, ay, az), (bx, by, bz) = a.T, b.T
    return np.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], axis=1)


def cross_motion(v, s):
    """Cross product v x s of spatial motion vectors."""
    return np.concatenate([cross(v[:, :3], s[:, :3]), cross(v[:, :3], s[:, 3:]) + cross(v[:, 3:], s[:, :3])], axis=1)


def cross_force(v, f):
    """Cross product v x* f of a spatial motion and a spatial force vector."""
    return np.concatenate([cross(v[:, :3], f[:, :3]) + cross(v[:, 3:], f[:, 3:]), cross(v[:, :3], f[:, 3:])], axis=1)


def times(A, v):
    """Matrices (batch, m, n) times vectors (batch, n)."""
    return (A @ v[..., None])[..., 0]


def dot(a, b):
    """Products of vectors (batch, n), (batch, 1)."""
    return np.einsum("bi,bi->b", a, b)[:, None]


class Chain:
    """The bodies, and the intermediate results of the sweeps (lists by body; the base is the last)."""

    def __init__(self, gravity, bodies):
        self.gravity, self.bodies = gravity, bodies

    def accelerations(self, q, qd, tau):
        """Joint accelerations (batch, n)."""
        bodies, n, batch = self.bodies, len(self.bodies), len(q)
        self.X, self.S, self.v, self.I, self.IA, self.pA, c, U, D, u = ([None] * n for _ in range(10))
        R, self.v = [None] * n + [np.eye(3)[None]], [None] * n + [np.zeros((1, 6))]
        for i, (parent, joint, pitch, translation, rotation, mass, cg, inertia) in enumerate(bodies):
            R[i] = R[parent] @ rotation
            z = np.broadcast_to(R[i][:, :, 2], (batch, 3))
            lever = R[parent] @ translation
            if joint != REVOLUTE:
                lever = lever + (pitch if joint == SCREW else 1.0) * q[:, i, None] * z
            if joint != PRISMATIC:
                R[i] = R[i] @ turn(q[:, i])
            nothing = np.zeros_like(z)
            parts = {REVOLUTE: (z, nothing), PRISMATIC: (nothing, z), SCREW: (z, pitch * z)}[joint]
            self.S[i] = np.concatenate(parts, axis=1)
            self.X[i] = np.zeros((len(lever), 6, 6)) + np.eye(6)
            self.X[i][:, 3:, :3] = -cross_matrix(lever)  # from the parent's joint origin to this one
            self.v[i] = times(self.X[i], self.v[parent]) + self.S[i] * qd[:, i, None]
            c[i] = cross_motion(self.v[i], self.S[i] * qd[:, i, None])
            arm = cross_matrix(R[i] @ cg)
            self.I[i] = np.empty((len(arm), 6, 6))
            self.I[i][:, :3, :3] = R[i] @ inertia @ R[i].transpose(0, 2, 1) - mass * arm @ arm
            self.I[i][:, :3, 3:], self.I[i][:, 3:, :3], self.I[i][:, 3:, 3:] = mass * arm, -mass * arm, mass * np.eye(3)
            self.IA[i], self.pA[i] = self.I[i], cross_force(self.v[i], times(self.I[i], self.v[i]))
        for i in reversed(range(n)):
            U[i] = times(self.IA[i], self.S[i])
            D[i] = dot(self.S[i], U[i])
            u[i] = tau[:, i, None] - dot(self.S[i], self.pA[i])
            parent = bodies[i][0]
            if parent >= 0:
                Ia = self.IA[i] - U[i][:, :, None] * (U[i] / D[i])[:, None, :]
                pa = self.pA[i] + times(Ia, c[i]) + U[i] * (u[i] / D[i])
                Xt = self.X[i].transpose(0, 2, 1)
                self.IA[parent] = self.IA[parent] + Xt @ Ia @ self.X[i]
                self.pA[parent] = self.pA[parent] + times(Xt, pa)
        qdd = np.empty_like(q)
        self.a = [None] * n + [np.concatenate([np.zeros(3), -self.gravity])[None]]
        for i in range(n):
            a = times(self.X[i], self.a[bodies[i][0]]) + c[i]
            qdd[:, i] = ((u[i] - dot(U[i], a)) / D[i])[:, 0]
            self.a[i] = a + self.S[i] * qdd[:, i, None]
        return qdd

    def balance(self):
        """Largest unbalanced moment or force of any body, per sample, after `accelerations`."""
        n, largest = len(self.bodies), 0.0
        handed = [np.zeros((1, 6))] * (n + 1)
        for i in reversed(range(n)):
            f = times(self.IA[i], self.a[i]) + self.pA[i]
            net = times(self.I[i], self.a[i]) + cross_force(self.v[i], times(self.I[i], self.v[i]))
            largest = np.maximum(largest, np.abs(f - net - handed[i]).max(1))
            parent = self.bodies[i][0]
            handed[parent] = handed[parent] + times(self.X[i].transpose(0, 2, 1), f)
        return largest


def rk4(rate, y, duration, step):
    """Integrate with equal steps of the classical method of order 4 (Kutta 1901)."""
    steps = int(np.ceil(duration / step * (1 - 1e-12)))
    h = duration / steps
    for _ in range(steps):
        k1 = rate(y)
        k2 = rate(y + h / 2 * k1)
        k3 = rate(y + h / 2 * k2)
        k4 = rate(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


def rk45(rate, y, duration, rtol, atol):
    """Integrate each sample with its own steps (Hairer, Norsett and Wanner 1993, II.4); also return the step counts."""
    y, batch = y.copy(), len(y)

    def norm(x, scale):
        return np.sqrt(np.mean((x / (atol + rtol * scale)) ** 2, axis=1))

    first = rate(y, np.arange(batch))
    extent, speed = norm(y, np.abs(y)), norm(first, np.abs(y))
    trial = np.where((extent < 1e-5) | (speed < 1e-5), 1e-6, 0.01 * extent / np.maximum(speed, 1e-300))
    change = norm(rate(y + trial[:, None] * first, np.arange(batch)) - first, np.abs(y)) / trial
    largest = np.maximum(np.maximum(speed, change), 1e-300)
    wanted = np.where(largest <= 1e-15, np.maximum(1e-6, 1e-3 * trial), (0.01 / largest) ** 0.2)
    h = np.minimum(100 * trial, wanted)
    t, before, rejected, steps = np.zeros(batch), np.full(batch, 1e-4), np.zeros(batch, bool), np.zeros(batch)
    h = np.where(1.01 * h >= duration, duration, h)
    running = np.arange(batch)
    while running.size:
        start, step, rates = y[running], h[running, None], [first[running]]
        for row in STAGES:
            stage = start + step * sum(weight * k for weight, k in zip(row, rates, strict=True))
            rates.append(rate(stage, running))
        error = step * sum(weight * k for weight, k in zip(ERROR, rates, strict=True))
        error = norm(error, np.maximum(np.abs(start), np.abs(stage)))
        accepted = error <= 1
        i = running[accepted]
        y[i], first[i] = stage[accepted], rates[-1][accepted]
        steps[i] += 1
        t[i] = np.where(duration - t[i] <= h[i], duration, t[i] + h[i])
        safe = np.clip(np.nan_to_num(error, nan=1e300, posinf=1e300), 1e-300, 1e300)
        factor = 0.9 * safe**-0.17
        grown = np.clip(factor * before[running] ** 0.04, 0.2, np.where(rejected[running], 1.0, 10.0))
        factor = np.where(accepted, grown, np.maximum(0.2, factor))
        before[i] = np.maximum(error[accepted], 1e-4)
        rejected[running] = ~accepted
        h[running] *= factor
        left = duration - t[running]
        going = (left > 0) & (h[running] >= 1e-15 * duration)
        h[running] = np.where(1.01 * h[running] >= left, left, h[running])
        running = running[going]
    return y, steps


def read(path):
    """Read a problem file."""
    numbers = iter(np.array(Path(path).read_text().split(), dtype=float))

    def take(count):
        return np.array([next(numbers) for _ in range(count)])

    n, batch = take(2).astype(int)
    gravity = take(3)
    task, repeats, calls = take(3).astype(int)
    settings = take(4)
    bodies = []
    for _ in range(n):
        parent, joint, pitch = take(3)
        translation, rotation, mass, cg, inertia = take(3), take(9).reshape(3, 3), take(1)[0], take(3), take(6)
        xx, xy, xz, yy, yz, zz = inertia
        tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        bodies.append((int(parent), int(joint), pitch, translation, rotation, mass, cg, tensor))
    return Chain(gravity, bodies), task, repeats, calls, settings, take(3 * n * batch).reshape(3, batch, n)


def main(problem, result):
    """Solve the problem, print the seconds of each repetition, and write the result."""
    chain, task, repeats, calls, (duration, step, rtol, atol), (q, qd, tau) = read(problem)
    n, start = len(chain.bodies), np.concatenate([q, qd], axis=1)

    def rate(y, which=slice(None)):
        return np.concatenate([y[:, n:], chain.accelerations(y[:, :n], y[:, n:], tau[which])], axis=1)

    def solve():
        if task == 0:
            return chain.accelerations(q, qd, tau), None
        if task == 1:
            return rk4(rate, start, duration, step), np.zeros(len(q))
        return rk45(rate, start, duration, rtol, atol)

    for _ in range(repeats):
        started = time.perf_counter()
        for _ in range(calls):
            solve()
        print((time.perf_counter() - started) / calls)
    numbers, last = solve()
    last = chain.balance() if task == 0 else last
    np.savetxt(result, np.column_stack([numbers, last]), fmt="%.17g")


if __name__ == "__main__":
    main(*sys.argv[1:])
