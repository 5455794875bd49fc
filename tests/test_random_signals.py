"""Random signals: the same for one sample and in any batch; spectra, variances and sea states in closed form."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, linalg, signal

import rbchain as rb
from rbchain.acting.drives import ONE_JOINT
from rbchain.acting.tables import action_of, table_of_drive

from .mechanisms import slide

plain = pytest.mark.plain_python
SEA = {"significant_wave_height": 3.0, "peak_period": 9.0}
GRAVITY = 9.80665
#: Five standard deviations: one false alarm in two million comparisons.
ALARM = 5.0

KINDS = {
    "noise": lambda **given: rb.Signal.noise([0.0, 2.0, 1.0], [0.5, 2.0, 4.0], offset=1.0, **given),
    "deterministic": lambda **given: rb.Signal.noise(lambda f: f**2, [0, 3], amplitudes="deterministic", **given),
    "ornstein_uhlenbeck": lambda **given: rb.Signal.ornstein_uhlenbeck(2.0, 0.5, offset=-1.0, **given),
    "random_walk": lambda **given: rb.Signal.random_walk(0.3, 0.1, **given),
    "sea_state": lambda **given: rb.Signal.sea_state(**SEA, quantity="vertical_velocity", depth=2.0, **given),
}
TIMES = np.array([0.0, 0.33, 1.0, 2.5])


def drift(**given):
    return rb.Signal.random_walk(0.3, 0.1, **given)


@plain
@pytest.mark.parametrize("kind", KINDS)
def test_a_sample_has_the_same_signal_alone_and_in_any_batch(kind):
    random = KINDS[kind](seed=5, channel=2)
    all_samples = random.signal(2.5, np.arange(40))(TIMES)
    np.testing.assert_array_equal(random.signal(2.5, 17)(TIMES), all_samples[17])
    np.testing.assert_array_equal(random.signal(2.5, [31, 4])(TIMES), all_samples[[31, 4]])
    np.testing.assert_array_equal(
        random.signal(9.9, np.arange(12).reshape(3, 4))(TIMES), all_samples[:12].reshape(3, 4, 4)
    )
    assert np.unique(all_samples[:, -1]).size == 40
    for other in (KINDS[kind](seed=6, channel=2), KINDS[kind](seed=5, channel=3)):
        assert not (other.signal(2.5, np.arange(40))(TIMES)[:, 1:] == all_samples[:, 1:]).any()


@plain
def test_parameters_of_each_sample_scale_its_signal():
    std, correlation_time = np.array([1.0, 2.0, 0.0]), np.array([0.5, 0.2, 1.0])
    many = rb.Signal.ornstein_uhlenbeck(std, correlation_time, interval=0.05, offset=[0, 1, 2]).signal(1.0, [0, 1, 2])
    for k in range(3):
        one = rb.Signal.ornstein_uhlenbeck(std[k], correlation_time[k], interval=0.05, offset=float(k)).signal(1.0, k)
        np.testing.assert_array_equal(many(TIMES[:3])[k], one(TIMES[:3]))
    heights = rb.Signal.sea_state([1.0, 3.0], [6.0, 9.0], factor=[1.0, -0.5]).signal(1.0, [0, 1])
    np.testing.assert_allclose(
        heights(TIMES)[1], -0.5 * rb.Signal.sea_state(3.0, 9.0).signal(1.0, 1)(TIMES), rtol=1e-13
    )


def welch_against(random, autocovariance, interval, points, samples, highest):
    """Compare Welch's estimate of the spectrum of many samples with its expectation.

    The expectation follows from the autocovariance and the window, so that it contains leakage and aliasing. The bound
    is five standard deviations of the mean over the samples.
    """
    times = interval * np.arange(points)
    values = random.signal(times[-1], np.arange(samples))(times)
    window = signal.get_window("hann", points)
    f, estimates = signal.welch(values, 1 / interval, window, nperseg=points, detrend=False)
    of_window = np.correlate(window, window, "full")[points - 1 :] / (window**2).sum()
    lags = autocovariance(times) * of_window
    expected = 2 * interval * (lags[0] + 2 * (lags[1:] * np.cos(2 * np.pi * f[:, None] * times[1:])).sum(-1))
    inside = (f > 0) & (f < highest)
    error = np.abs(estimates.mean(0) - expected)[inside]
    bound = ALARM * estimates.std(0)[inside] / math.sqrt(samples)
    # the mean of the estimates is not normally distributed in the first order of 1 / sqrt(samples)
    assert (error < bound).all(), (error / bound).max()
    return f[inside], expected[inside]


@pytest.mark.slow
@plain
def test_spectrum_of_band_limited_noise():
    frequencies, density = np.array([1.0, 2.0, 6.0]), np.array([0.0, 3.0, 1.0])
    fine = np.linspace(1.0, 6.0, 2001)
    G = np.interp(fine, frequencies, density)

    def autocovariance(t):
        return integrate.trapezoid(G * np.cos(2 * np.pi * fine * t[:, None]), fine)

    random = rb.Signal.noise(density, frequencies)
    f, expected = welch_against(random, autocovariance, 0.05, 200, 1000, 9.9)
    inside = (f > 1.6) & (f < 5.4) & (abs(f - 2.0) > 0.4)  # where the density is linear, leakage does not change it
    np.testing.assert_allclose(expected[inside], np.interp(f[inside], frequencies, density), rtol=2e-3)


@plain
def test_spectrum_of_the_ornstein_uhlenbeck_process():
    """At the points of the grid, and between them with the factor sinc(f interval)^4 and aliases of the grid."""
    std, T, interval = 2.0, 0.4, 0.1
    random = rb.Signal.ornstein_uhlenbeck(std, T, interval=interval)
    f, expected = welch_against(random, lambda t: std**2 * np.exp(-t / T), interval, 256, 1500, 4.9)
    low = (f > 0.2) & (f < 0.5)
    np.testing.assert_allclose(expected[low], 4 * std**2 * T / (1 + (2 * np.pi * f[low] * T) ** 2), rtol=0.05)

    # averaged over the phase of the grid, the autocovariance of the interpolation is a sum of cubic B-splines
    def of_interpolation(t):
        x = np.abs(t[:, None] / interval - np.arange(-90, 91))
        spline = np.where(x < 1, 2 / 3 - x**2 + x**3 / 2, np.clip(2 - x, 0, None) ** 3 / 6)
        return std**2 * (spline * np.exp(-np.abs(np.arange(-90, 91)) * interval / T)).sum(-1)

    a = math.exp(-interval / T)
    np.testing.assert_allclose(of_interpolation(np.zeros(1)), std**2 * (2 + a) / 3, rtol=1e-12)
    f = np.linspace(0.3, 25, 40)
    t = np.linspace(0, 8, 16_001)
    found = 4 * integrate.simpson(of_interpolation(t) * np.cos(2 * np.pi * f[:, None] * t), x=t)
    of_grid = 2 * interval * std**2 * (1 - a**2) / (1 - 2 * a * np.cos(2 * np.pi * f * interval) + a**2)
    np.testing.assert_allclose(found, of_grid * np.sinc(f * interval) ** 4, rtol=0, atol=1e-6)


@plain
def test_variances_of_the_ornstein_uhlenbeck_process():
    """At a point of the grid and in the middle between two, and the autocovariance, within five standard deviations."""
    std, T, interval, samples = 1.5, 0.5, 0.25, 20_000
    values = rb.Signal.ornstein_uhlenbeck(std, T, interval=interval, offset=4.0).signal(2.0, np.arange(samples))
    x, middle, y = values([0.5, 1.125, 1.25]).T - 4.0
    a = math.exp(-interval / T)
    for found, expected in ((x, std**2), (middle, std**2 * (1 + a) / 2), (y, std**2)):
        assert abs(found.var() - expected) < ALARM * math.sqrt(2 / samples) * expected
        assert abs(found.mean()) < ALARM * math.sqrt(expected / samples)
    covariance, expected = (x * y).mean(), std**2 * math.exp(-0.75 / T)
    assert abs(covariance - expected) < ALARM * math.sqrt((std**4 + expected**2) / samples)


@plain
def test_growth_of_the_variance_of_a_random_walk():
    intensity, interval, samples = 0.4, 0.2, 20_000
    walks = rb.Signal.random_walk(intensity, interval, offset=2.0).signal(8.0, np.arange(samples))
    times = np.array([0.0, 0.2, 1.0, 4.0, 8.0])
    values = walks(times) - 2.0
    assert (values[:, 0] == 0.0).all()
    for t, x in zip(times[1:], values.T[1:], strict=True):
        assert abs(x.var() - intensity**2 * t) < ALARM * math.sqrt(2 / samples) * intensity**2 * t
    steps = np.diff(values[:, 2:])
    assert abs((steps[:, 0] * steps[:, 1]).mean()) < ALARM * steps[:, 0].std() * steps[:, 1].std() / math.sqrt(samples)
    # linear between the points
    np.testing.assert_allclose(walks(0.3), (walks(0.2) + walks(0.4)) / 2, rtol=0, atol=1e-13)


@plain
@pytest.mark.parametrize("gamma", [1.0, 3.3, 7.0])
def test_significant_wave_height(gamma):
    """4 sqrt(m0) of each realization; with random amplitudes, of their mean square."""
    sea = rb.Signal.sea_state(**SEA, gamma=gamma).signal(1.0, np.arange(20))
    np.testing.assert_allclose(4 * np.sqrt((sea.waves[..., 0] ** 2).sum(-1) / 2), 3.0, rtol=1e-12)
    random = rb.Signal.sea_state(**SEA, gamma=gamma, amplitudes="random").signal(1.0, np.arange(2000))
    m0 = (random.waves[..., 0] ** 2).sum(-1) / 2
    # each of the 100 squares of amplitudes has an exponential distribution
    assert abs(m0.mean() / (3.0**2 / 16) - 1) < ALARM / math.sqrt(100 * 2000)
    # over a finite time, neighboring sines are not orthogonal: the variance of a record scatters about m0
    records = sea(np.linspace(0, 1800, 2001)).var(-1)
    assert abs(records.mean() - 3.0**2 / 16) < ALARM * records.std() / math.sqrt(20)
    assert records.std() < 0.1 * records.mean()


@plain
@pytest.mark.parametrize("gamma", [1.0, 3.3])
def test_spectrum_of_a_sea_state(gamma):
    """Shares of the variance in bands of frequency, against an integral of the JONSWAP spectrum; periods."""
    Hs, Tp = SEA["significant_wave_height"], SEA["peak_period"]

    def density(f):
        x = f * Tp
        peak = gamma ** np.exp(-((x - 1) ** 2) / 2 / np.where(x <= 1, 0.07, 0.09) ** 2)
        return 5 / 16 * Hs**2 * Tp * x**-5 * np.exp(-1.25 * x**-4) * peak

    limits = np.array([0.4, 0.8, 0.95, 1.0, 1.05, 1.2, 1.5, 2.0, 3.0, 5.0]) / Tp
    parts = np.array([integrate.quad(density, *pair, epsabs=1e-12)[0] for pair in itertools.pairwise(limits)])
    if gamma == 1.0:  # the spectrum of Pierson and Moskowitz integrates to Hs^2 / 16
        np.testing.assert_allclose(parts.sum(), Hs**2 / 16, rtol=2.1e-3)
    samples, sines = 400, 100
    sea = rb.Signal.sea_state(**SEA, gamma=gamma).signal(1.0, np.arange(samples))
    f = sea.waves[..., 1] / (2 * np.pi)
    shares = np.stack([((f >= low) & (f < high)).mean(-1) for low, high in itertools.pairwise(limits)], -1)
    # at most two sines of a realization, those at the limits of the band, may be inside or outside
    np.testing.assert_allclose(shares.mean(0), parts / parts.sum(), rtol=0, atol=ALARM * 2 / sines / math.sqrt(samples))
    second_moment = integrate.quad(lambda f: f**2 * density(f), limits[0], limits[-1], limit=200)[0]
    of_samples = (f**2).mean(-1)
    expected = second_moment / parts.sum()
    assert abs(of_samples.mean() - expected) < ALARM * of_samples.std() / math.sqrt(samples) + 1e-3 * expected


@plain
def test_motion_of_the_water_under_waves():
    """Velocities and accelerations of one wave, and that they fit the elevation of the sea."""
    t = np.linspace(0, 20, 50)

    def of(quantity, depth, sines=40):
        return rb.Signal.sea_state(**SEA, quantity=quantity, depth=depth, sines=sines).signal(20.0, 3)

    elevation = of("elevation", 0.0)
    np.testing.assert_allclose(of("vertical_velocity", 0.0)(t), elevation(t, 1), rtol=0, atol=1e-12)
    for direction in ("horizontal", "vertical"):
        velocity, acceleration = (
            of(f"{direction}_{name}", 4.0)(t, d) for name, d in (("velocity", 1), ("acceleration", 0))
        )
        np.testing.assert_allclose(acceleration, velocity, rtol=0, atol=1e-12)
    (amplitude, w, phase), depth = of("elevation", 0.0, sines=1).waves[0], 5.0
    at_depth = amplitude * w * math.exp(-(w**2) / GRAVITY * depth)
    np.testing.assert_allclose(of("horizontal_velocity", depth, 1)(t), at_depth * np.sin(w * t + phase), atol=1e-12)
    np.testing.assert_allclose(of("vertical_velocity", depth, 1)(t), at_depth * np.cos(w * t + phase), atol=1e-12)


def variance_of_oscillator(m, c, k, std, T):
    """Stationary variances of position and velocity of m x'' + c x' + k x = F, F an Ornstein-Uhlenbeck process.

    They satisfy the Lyapunov equation of the state (x, x', F).
    """
    w2, g = k / m, c / m
    of_position = (std / m) ** 2 * T * (1 + g * T) / (g * w2 * (1 + g * T + w2 * T**2))
    of_velocity = (std / m) ** 2 * T / (g * (1 + g * T + w2 * T**2))
    return of_position, of_velocity


@plain
def test_closed_form_of_the_oscillator():
    m, c, k, std, T = 2.0, 0.8, 5.0, 1.5, 0.6
    A = np.array([[0, 1, 0], [-k / m, -c / m, 1 / m], [0, 0, -1 / T]])
    P = linalg.solve_continuous_lyapunov(A, -np.diag([0, 0, 2 * std**2 / T]))
    np.testing.assert_allclose(variance_of_oscillator(m, c, k, std, T), np.diag(P)[:2], rtol=1e-12)


def test_variance_of_an_oscillator_under_an_ornstein_uhlenbeck_force():
    """In compiled code. Linear interpolation of the force is exact for rk4 steps that end at the points of the grid."""
    m, c, k, std, T, interval, samples = 2.0, 2.5, 5.0, 1.5, 0.6, 0.03, 10_000
    force = rb.Signal.ornstein_uhlenbeck(std, T, interval=interval)
    model = slide(m, damping=c, stiffness=k)
    start = np.zeros((samples, 1))
    # after 12 s, exp(-c t / m) = 3e-7 of the initial variance is left
    settings = {"method": "rk4", "step": interval, "drives": [rb.PrescribedForce("slide", force, limit=1e9)]}
    motion = model.simulate(start, start, 12.0, save_at=2, **settings)
    assert motion.success
    for found, expected in zip((motion.q, motion.qd), variance_of_oscillator(m, c, k, std, T), strict=True):
        # the interpolation of the force removes up to (1 - exp(-interval / T)) / 3 of its variance
        bound = ALARM * math.sqrt(2 / samples) + (1 - math.exp(-interval / T)) / 3
        assert abs(found[:, -1, 0].var() / expected - 1) < bound
    # samples of a batch see the noise that they see alone
    few, alone = (model.simulate(start[:n], start[:n], 0.3, save_at=2, **settings) for n in (5, 1))
    np.testing.assert_array_equal(alone.q[0], few.q[0])
    drives = [rb.PrescribedForce("slide", force.signal(0.3, [3]), limit=1e9)]
    alone = model.simulate(start[:1], start[:1], 0.3, save_at=2, **settings | {"drives": drives})
    np.testing.assert_array_equal(alone.q[0], few.q[3])


@plain
def test_each_place_has_its_own_channel_and_waves_belong_to_one_sea():
    wind = rb.Signal.ornstein_uhlenbeck(1.0, 0.1)
    sea = rb.Signal.sea_state(**SEA)
    forces = [
        rb.Wrench("slide", force=(wind, wind, sea)),
        rb.Wrench("slide", force=(sea, rb.Signal.noise(1.0, [1, 2]), 0.0)),
    ]
    model, start = slide(1.0), np.zeros((3, 1))
    settings = {"method": "rk4", "step": 0.05, "save_at": 3}
    motion = model.simulate(start, start, 0.1, drives=[rb.PrescribedForce("slide", wind)], forces=forces, **settings)
    (first, second, elevation), (same, *_) = (wrench.force for wrench in motion.forces)
    signals = [motion.tau[..., 0], first(motion.t), second(motion.t)]
    for channel, found in enumerate(signals):
        expected = rb.Signal.ornstein_uhlenbeck(1.0, 0.1, channel=channel, seed=0).signal(0.1, range(3))(motion.t)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_array_equal(elevation(motion.t), same(motion.t))
    np.testing.assert_array_equal(elevation(motion.t), sea.signal(0.1, range(3))(motion.t))


@plain
def test_places_do_not_use_the_channels_that_other_signals_have_been_given():
    signals = [rb.Signal.ornstein_uhlenbeck(1.0, 0.1, channel=channel) for channel in (1, None)]
    model, start = slide(1.0), np.zeros((2, 1))
    forces = [rb.Wrench("slide", force=(signal, 0.0, 0.0)) for signal in signals]
    motion = model.simulate(start, start, 0.1, method="rk4", step=0.05, forces=forces, save_at=2)
    first, second = (wrench.force[0](motion.t) for wrench in motion.forces)
    assert (first != second).all()


@plain
@pytest.mark.plain_python
@pytest.mark.parametrize(
    ("drive", "field"),
    [
        (lambda noise: rb.PID("link1", 0.0, kp=noise), "PID of joint 'link1': kp"),
        (lambda noise: rb.Sampled(rb.PID("link1", 0.0, kp=1.0), period=0.01, delay=noise), "Sampled PID .*: delay"),
    ],
)
def test_numbers_that_are_constant_over_time_refuse_a_signal_and_do_not_print_its_table(drive, field):
    model, start = rb.Model.serial_chain(1), np.zeros((2, 1))
    noise = rb.Signal.ornstein_uhlenbeck(0.1, 0.001)
    shown = r"RandomSignal\(kind='ornstein_uhlenbeck', parameters=\{.*\}, seed=None, channel=None\)"
    with pytest.raises(rb.ArgumentError, match=rf"^{field} is a signal, {shown}; expected one number, or one for each"):
        model.simulate(start, start, 0.1, method="rk4", step=0.01, drives=[drive(noise)], save_at=2)
    assert repr(rb.Signal.constant(2.0)) == "Signal.constant(2.0)"


def test_tables_of_random_signals():
    table = {"type": "ornstein_uhlenbeck", "std": 2.0, "correlation_time": 0.5, "seed": 3}
    current = action_of({"velocity": [table, 0.0, {"type": "sea_state", **SEA}]}, {"Current": rb.Current})
    expected = rb.Signal.ornstein_uhlenbeck(2.0, 0.5, seed=3).signal(1.0, 2)
    np.testing.assert_array_equal(current.velocity[0].signal(1.0, 2)(TIMES[:3]), expected(TIMES[:3]))
    for kind in ("noise", "ornstein_uhlenbeck", "random_walk", "sea_state"):
        drive = rb.PrescribedForce("slide", KINDS[kind](seed=4))
        again = action_of(table_of_drive(drive), {kind.__name__: kind for kind in ONE_JOINT})
        pair = [d.signal.signal(2.5, [1, 5])(TIMES) for d in (drive, again)]
        np.testing.assert_array_equal(*pair)


@plain
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rb.Signal.noise(1.0, [2.0, 1.0]), "frequencies is .* increasing frequencies in Hz"),
        (lambda: rb.Signal.noise(1.0, [-1.0, 1.0]), "frequencies is .* not negative"),
        (lambda: rb.Signal.noise(-1.0, [0, 1]), "density is -1.0; expected numbers of at least 0"),
        (lambda: rb.Signal.noise(0.0, [0, 1]), "density has shape .* largest value 0; expected one density above 0"),
        (lambda: rb.Signal.noise([1.0, 2.0, 3.0], [0, 1]), "density has shape .3,.* each of the 2 frequencies"),
        (lambda: rb.Signal.noise(1.0, [0, 1], sines=0), "sines is 0; expected a whole number from 1 to"),
        (lambda: rb.Signal.noise(1.0, [0, 1], amplitudes="fixed"), "amplitudes is 'fixed'; expected one of 'random'"),
        (lambda: rb.Signal.noise(1.0, [0, 1], seed=-1), "seed is -1; expected a whole number from 0"),
        (lambda: rb.Signal.noise(1.0, [0, 1], channel=1 << 31), "channel is .*; expected a whole number from 0 to"),
        (lambda: rb.Signal.ornstein_uhlenbeck(1.0, 0.0), "correlation_time is 0.0; expected numbers above 0"),
        (lambda: rb.Signal.ornstein_uhlenbeck(1.0, [1.0, 2.0]), "interval is missing, and correlation_time differs"),
        (lambda: rb.Signal.ornstein_uhlenbeck(np.inf, 1.0), "std is inf; expected finite numbers"),
        (lambda: rb.Signal.random_walk(1.0, 0.0), "interval is 0.0; expected a finite number above 0"),
        (lambda: rb.Signal.sea_state(2.0, 8.0, gamma=0.5), "gamma is 0.5; expected a finite number of at least 1"),
        (lambda: rb.Signal.sea_state(2.0, 8.0, quantity="height"), "quantity is 'height'; expected one of 'elevation'"),
        (lambda: rb.Signal.sea_state(2.0, 8.0, depth=-1.0), "depth is -1.0; expected numbers of at least 0"),
        (lambda: rb.Signal.sea_state(2.0, 8.0, depth=1.0), 'depth is 1.0, but quantity is "elevation", which is at'),
        (
            lambda: drift().signal(1e6, np.arange(1000)),
            "random_walk. of 1000 samples and 1e.06 s needs 960 GB; expected at most 8 GB. Simulate fewer samples",
        ),
        (
            lambda: rb.Signal.random_walk([1.0, 2.0], 0.1).signal(1.0, [0, 1, 2]),
            r"intensity of a random signal has shape \(2,\); expected one number, or an array of shape \(3,\)",
        ),
        (
            lambda: drift().signal(1.0, 1.7),
            "sample_ids is 1.7; expected whole numbers >= 0",
        ),
        (
            lambda: rb.Signal.noise(lambda f: [1.0, 2.0], [0, 1]).signal(1.0),
            r"density\(f\) has shape \(2,\) for frequencies of shape .*; expected one number, or one for each",
        ),
        (
            lambda: rb.Wrench("slide", force=(drift(), 0, 0)).of_sample(0, (2,)),
            r"force is a random signal, .* Use its method signal\(duration, sample_ids\)",
        ),
        (
            lambda: table_of_drive(rb.PrescribedForce("slide", rb.Signal.noise(lambda f: 1 + f, [0, 1]))),
            "signal is noise whose density is a function, which a table cannot contain; expected numbers",
        ),
    ],
)
def test_errors(make, message):
    with pytest.raises(rb.ArgumentError, match=message):
        make()
