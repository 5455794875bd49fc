"""Every quantity of a model as a function of one state, the states, and how large rounding errors may be."""

from types import SimpleNamespace

import numpy as np

# The contribution of a body to an equation has about 16 rounding errors of eps / 2:
# sine and cosine (4), the placement's product (3), the turn (2), the inertia's two products (6), the sum (1).
ROUNDINGS = 8
EPS = ROUNDINGS * np.finfo(float).eps


def norm(x):
    return np.linalg.norm(np.asarray(x, float))


def random_states(model, batch, seed=0, arrays=3):
    """Return positions, velocities, and more arrays of the shape of the velocities: accelerations, forces."""
    rng = np.random.default_rng(seed)
    q, qd = model.random_state(rng, batch)
    return q, qd, *rng.normal(size=(arrays - 2, *batch, model.nv))


def random_wrenches(model, batch, seed=1):
    return np.random.default_rng(seed).normal(size=(*batch, model.n_bodies, 6))


# Arguments of each quantity, by their names in a state.
ARGUMENTS = {
    "forward_dynamics": "q qd tau wrenches",
    "inverse_dynamics": "q qd qdd wrenches",
    "hybrid_dynamics": "q qd tau qdd prescribed wrenches",
    "bias_forces": "q qd",
    "gravity_forces": "q",
    "force_balance_residual": "q qd tau wrenches",
    "joint_reactions": "q qd qdd wrenches",
    "power": "q qd tau wrenches",
    "mass_matrix": "q",
    "mass_matrix_inverse": "q",
    "solve_mass_matrix": "q tau",
    "coriolis_matrix": "q qd",
    "christoffel_symbols": "q",
    "centroidal_momentum_matrix": "q",
    "momentum": "q qd",
    "center_of_mass": "q",
    "energy": "q qd",
    "body_poses": "q",
    "frame_poses": "q frame",
    "body_velocities": "q qd",
    "body_accelerations": "q qd qdd",
    "jacobian": "q frame point",
    "relative_jacobian": "q frame point relative_to",
    "jacobian_derivative": "q qd frame point",
    "relative_jacobian_derivative": "q qd frame point relative_to",
    "inverse_dynamics_derivatives": "q qd qdd",
    "forward_dynamics_derivatives": "q qd tau",
    "inverse_dynamics_regressor": "q qd qdd",
    "kinetic_energy_regressor": "q qd",
    "potential_energy_regressor": "q",
    "integrate": "q qd",
    "difference": "q q1",
}
KEYWORDS = ("point", "relative_to")
# Arguments that are the same for all samples of a batch.
SHARED = ("frame", "relative_to", "point")


def random_state(model, batch, seed=0):
    """Return a state with all arguments of the quantities. The frame is the last body, relative to the first."""
    q, qd, qdd, tau = random_states(model, batch, seed, arrays=4)
    rng = np.random.default_rng(seed + 1000)
    return SimpleNamespace(
        q=q,
        qd=qd,
        qdd=qdd,
        tau=tau,
        q1=model.random_state(rng, batch)[0],
        wrenches=random_wrenches(model, batch, seed + 2000),
        prescribed=rng.random((*batch, model.nv)) < 0.5,
        frame=model.body_names[-1],
        relative_to=model.body_names[0],
        point=(0.3, -0.2, 0.1),
    )


def map_state(function, state):
    """The state with a function applied to its arrays (..., m)."""
    return SimpleNamespace(**{k: v if k in SHARED else function(v) for k, v in vars(state).items()})


def chains_of(state, index):
    """Return some of the samples of a batch."""
    return map_state(lambda x: x[index], state)


def single(state):
    """Return the state rounded to float32."""
    return map_state(lambda x: x if x.dtype == bool else x.astype(np.float32), state)


def called(model, name, state, **settings):
    """Call the method of a quantity with its arguments."""
    names = ARGUMENTS[name].split()
    arguments = [getattr(state, name) for name in names if name not in KEYWORDS]
    keywords = {name: getattr(state, name) for name in names if name in KEYWORDS}
    return getattr(model, name.removeprefix("relative_"))(*arguments, **keywords, **settings)


def computed(model, name, state):
    """A quantity of a model, as a tuple of arrays."""
    found = called(model, name, state)
    if name in ("body_poses", "frame_poses"):
        return found.translation, found.rotation
    return found if isinstance(found, tuple) else (found,)


def shapes(model, name):
    """Shapes of a quantity of one sample."""
    n, v, row = model.n_bodies, model.nv, 10 * model.n_bodies
    return {
        "hybrid_dynamics": [(v,), (v,)],
        "force_balance_residual": [(n, 6)],
        "joint_reactions": [(n, 6)],
        "power": [()],
        "mass_matrix": [(v, v)],
        "mass_matrix_inverse": [(v, v)],
        "coriolis_matrix": [(v, v)],
        "christoffel_symbols": [(v, v, v)],
        "centroidal_momentum_matrix": [(6, v)],
        "momentum": [(6,)],
        "center_of_mass": [(3,)],
        "energy": [(), ()],
        "body_poses": [(n, 3), (n, 3, 3)],
        "frame_poses": [(3,), (3, 3)],
        "body_velocities": [(n, 6)],
        "body_accelerations": [(n, 6)],
        "jacobian": [(6, v)],
        "relative_jacobian": [(6, v)],
        "jacobian_derivative": [(6, v)],
        "relative_jacobian_derivative": [(6, v)],
        "inverse_dynamics_derivatives": [(v, v)] * 3,
        "forward_dynamics_derivatives": [(v, v)] * 3,
        "inverse_dynamics_regressor": [(v, row)],
        "kinetic_energy_regressor": [(row,)],
        "potential_energy_regressor": [(row,)],
        "integrate": [(model.nq,)],
    }.get(name, [(v,)])


def out_shape(model, name):
    """Shape of `out` for one sample: several results are stacked, and a pose has twelve numbers."""
    own = shapes(model, name)
    if name in ("body_poses", "frame_poses"):
        return (*own[0][:-1], 12)
    return own[0] if len(own) == 1 else (len(own), *own[0])


class Magnitudes:
    """Upper bounds of the terms of a model's equations, per state: rounding errors are proportional to them.

    A quantity is a sum of many terms that may cancel; each is a product of these magnitudes, so that n EPS times the
    product bounds the error.
    """

    def __init__(self, model, state):
        origins = model.body_poses(state.q).translation
        parents = np.concatenate([origins, np.zeros_like(origins[..., :1, :])], -2)[..., model.parent, :]
        levers = np.linalg.norm(origins - parents, axis=-1).sum(-1)
        self.length = 1.0 + levers + np.linalg.norm(model.cg, axis=-1).max()
        self.rate = 1.0 + np.abs(state.qd).sum(-1)
        self.acceleration = np.abs(state.qdd).sum(-1) + 2.0 * self.rate**2
        added = np.abs(model.added_mass + model.fluid_density * model.added_volume).sum() if model.in_water else 0.0
        self.inertia = (model.mass.sum() + added) * self.length**2 + np.abs(model.inertia).sum() + model.armature.sum()
        heavy = model.mass.sum() + model.fluid_density * model.volume.sum()
        self.weight = heavy * np.linalg.norm(model.gravity) * self.length
        self.load = self.length * np.linalg.norm(state.wrenches, axis=-1).sum(-1)
        self.force = self.inertia * self.acceleration + self.weight + self.load
        self.energy = self.inertia * self.rate**2 + self.weight
        # 1 / smallest eigenvalue; if some joints are held, it does not increase (interlacing)
        self.inverse = 1.0 / np.linalg.eigvalsh(model.mass_matrix(state.q))[..., 0]
        self.rounding = model.nv * EPS


# The step of central differences. Motions are polynomials and trigonometric functions of frequencies up to 2 rate.
STEP = 2.0**-14


def derivative(function):
    """Derivative at 0 of function(s), to fourth order."""
    before2, before, after, after2 = (function(s * STEP) for s in (-2.0, -1.0, 1.0, 2.0))
    return (8.0 * (after - before) - (after2 - before2)) / (12.0 * STEP)


def derivative_error(size, sizes):
    """Largest error of `derivative` for a function of this size with frequencies up to 2 rate."""
    return size * ((2.0 * sizes.rate) ** 5 * STEP**4 / 30.0 + 1.5 * sizes.rounding / STEP)


def along(model, state, s):
    """Return the state after a time s, to first order, which is sufficient for a first derivative."""
    return model.integrate(state.q, s * state.qd), state.qd + s * state.qdd


def assert_within(found, expected, allowed):
    """Check that every entry (batch, ...) is within the error allowed in its sample (batch,)."""
    error = np.abs(np.asarray(found) - expected)
    error = error.reshape(*np.shape(allowed), -1).max(-1, initial=0.0)
    assert (error <= allowed).all(), f"errors {error}, allowed {allowed}"


def matrix_vector(matrix, vector):
    return np.einsum("...ij,...j", matrix, vector)


def arrays_of(quantity):
    return [argument for argument in ARGUMENTS[quantity].split() if argument not in SHARED]


def with_argument(state, argument, value):
    changed = map_state(lambda x: x, state)
    setattr(changed, argument, value)
    return changed


def in_quaternions(model):
    """Mark the entries of q that are part of a quaternion."""
    found = np.zeros(model.nq, bool)
    for kind, at in zip(model.joint_types, model.position_index, strict=True):
        start = {"free": at + 3, "spherical": at}.get(kind, model.nq)
        found[start : start + 4] = True
    return found


# Their rounding errors grow with the condition number of the mass matrix.
SOLVED = (
    "forward_dynamics",
    "hybrid_dynamics",
    "mass_matrix_inverse",
    "solve_mass_matrix",
    "forward_dynamics_derivatives",
)


def usual_rounding(model, quantity, state):
    """Return the difference allowed per sample if only the order of operations differs."""
    sizes = Magnitudes(model, state)
    terms = {"force_balance_residual": sizes.force, "power": sizes.force * sizes.rate}
    if quantity in terms:  # these are small remainders of larger terms
        return [sizes.rounding * terms[quantity]]
    growth = sizes.inertia * sizes.inverse if quantity in SOLVED else 1.0
    batch = np.shape(sizes.length)
    largest = [np.abs(x).reshape(*batch, -1).max(-1) for x in computed(model, quantity, state)]
    return [sizes.rounding * growth * x for x in largest]
