"""Running studies: bits that do not depend on how they are run or interrupted, and closed forms."""

import contextlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
import types

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import ellipk

import rbchain as rb
from rbchain.study.run.chunks import chunk_size
from rbchain.study.store.store import Store

from ..conftest import HANG_LIMIT
from .gate import use

RK4 = {"duration": 0.5, "method": "rk4", "step": 0.01, "save_at": 6}
NORMAL = {"type": "normal", "mean": 1.0, "std": 0.05}
MASS = {"*.mass_and_inertia": rb.Dispersion(NORMAL, how="multiply")}
START = {"*.q": rb.Uniform("-20 deg", "20 deg")}
HEIGHT = {"name": "height", "quantity": "coordinate", "frame": "link2", "axis": "y"}


def swinging(arm, **keys):
    """A study of two links that swing."""
    given = {"model": arm, "samples": 150, "vary": MASS | START, "simulate": RK4, "measures": [HEIGHT]}
    return rb.Study(**(given | keys))


def check_same(found, expected):
    """Compare every output to the last bit."""
    assert set(found) == set(expected)
    for name in expected:
        assert found[name].values.tobytes() == expected[name].values.tobytes(), name
    assert found.attrs["statistics"] == expected.attrs["statistics"]


def test_results_have_names_units_and_provenance(arm, tmp_path):
    outputs = {"final": True, "extremes": True, "motion": True}
    study = swinging(arm, outputs=outputs, name="two links", events=[rb.Event("link1", value=-0.5, stop=False)])
    results = study.run(tmp_path / "out", chunk=64)
    assert results.sizes == {"sample": 150, "parameter": 4, "position": 2, "velocity": 2, "time": 6, "event": 1}
    assert list(results.parameter.values) == [
        "link1.mass_and_inertia",
        "link2.mass_and_inertia",
        "link1.q",
        "link2.q",
    ]
    assert results.height.attrs == {"units": "m", "long_name": "height (m)"}
    assert np.array_equal(results.q[:, -1], results.q_final)
    # extremes are located within the steps, to less than 1e-9 of the change of the state in a step
    assert (results.q_max > results.q.max("time") - 1e-9).all() and (results.q_max > results.q.max("time") + 1e-4).any()
    assert (results.qd_min < results.qd.min("time") + 1e-9).all()
    assert np.array_equal(results.parameters, study.plan.draw(0, 150))
    words = {key: json.loads(results.attrs[key]) for key in ("provenance", "effects", "study", "statistics")}
    assert words["study"]["seed"] == 0
    assert words["provenance"]["versions"]["rbchain"]
    assert {"command", "git", "machine"} < set(words["provenance"])
    assert (
        words["effects"]["*.mass_and_inertia"] == "mass, inertia of link1, link2 (inertia tensors scale with the mass)"
    )
    assert words["statistics"]["samples"] == 150
    lines = [json.loads(line) for line in (tmp_path / "out" / "log.jsonl").read_text().splitlines()]
    assert [line["event"] for line in lines] == ["started", "finished"]
    # the model gives the same results
    many = arm.vary(mass=arm.mass * results.parameters[:, :2].values, inertia=study.plan.samples(
        results.parameters.values, np.arange(150)).build().inertia)  # fmt: skip
    motion = many.simulate(
        results.parameters[:, 2:].values, np.zeros((150, 2)), 0.5, method="rk4", step=0.01, save_at=2
    )
    assert np.allclose(motion.q[:, -1], results.q_final, rtol=0, atol=1e-9)


def test_no_bit_depends_on_chunks_threads_executors_or_storage(arm, tmp_path):
    fastest = {"name": "fastest", "quantity": "speed", "frame": "link2", "over": "max"}
    study = swinging(arm, samples=150, measures=[HEIGHT, fastest])
    expected = study.run(chunk=150)
    before = rb.get_num_threads()
    try:
        for threads, chunk in ((1, 150), (2, 150), (3, 7), (8, 64)):
            rb.set_num_threads(threads)
            check_same(study.run(chunk=chunk), expected)
    finally:
        rb.set_num_threads(before)
    check_same(swinging(arm, samples=12).run(chunk=1), swinging(arm, samples=12).run())
    check_same(study.run(tmp_path / "stored", chunk=40), expected)
    check_same(study.run(chunk=40, executor="processes", workers=2), expected)


@pytest.mark.slow
def test_a_cluster_changes_no_bit_when_a_worker_is_killed(arm):
    from distributed import Client, LocalCluster

    study = swinging(arm, samples=600)
    expected = study.run()
    killed = []

    def kill_one(count, statistics):
        if count and not killed:
            killed.append(next(iter(cluster.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster,
        Client(cluster) as client,
    ):
        check_same(study.run(chunk=50, executor="dask", scheduler=client, progress=kill_one), expected)
    assert killed


@pytest.mark.slow
def test_a_killed_worker_process_is_replaced_and_changes_no_bit(arm):
    study, killed = swinging(arm, samples=400), []

    def kill_one(count, statistics):
        if count and len(killed) < 2:
            killed.append(multiprocessing.active_children()[0].pid)
            os.kill(killed[-1], signal.SIGKILL)

    found = study.run(chunk=20, executor="processes", workers=2, progress=kill_one)
    assert len(killed) == 2
    check_same(found, study.run())
    assert not multiprocessing.active_children()


def die(model, motion):
    """A measure that ends its process."""
    os._exit(1)


class Odd(Exception):
    """An error that cannot be unpickled."""

    def __init__(self, one, two):
        super().__init__(one)


def odd(model, motion):
    raise Odd(1, 2)


@pytest.mark.slow
def test_worker_processes_that_keep_dying_or_fail_end_the_study_with_an_error(arm):
    for function, words in (
        (die, r"chunk 0 \(samples 0 to 149\): the worker process died 3 times; it ended with the exit code 1"),
        (odd, "Odd: 1"),
    ):
        measures = [{"name": "x", "quantity": "function", "function": function}]
        with pytest.raises(rb.StudyError, match=words):
            swinging(arm, measures=measures).run(executor="processes", workers=1)


def test_a_function_that_a_worker_process_cannot_import_is_named(arm, monkeypatch):
    """The module exists in this process only."""
    module = types.ModuleType("only_in_this_process")
    exec("def of_position(model, motion): return motion.q[..., 0]", vars(module))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    measures = [{"name": "x", "quantity": "function", "function": module.of_position}]
    message = "a worker process cannot import what the study needs: ModuleNotFoundError: No module named 'only_in_this"
    with pytest.raises(rb.StudyError, match=message):
        swinging(arm, samples=2, measures=measures).run(executor="processes", workers=1)


STUDY = """
name = "killed"
model = {{ serial_chain = {{ n = 2 }} }}
samples = {samples}
{more}

[vary."*.mass"]
how = "multiply"
distribution = {{ type = "normal", mean = 1, std = {std} }}

[simulate]
duration = 0.5
method = "rk4"
step = 0.01

[[measures]]
name = "height"
quantity = "coordinate"
frame = "link2"
axis = "y"

[[measures]]
name = "passed"
quantity = "function"
function = "tests.study.gate:wait_at_gate"
"""


def command(folder, *words):
    return [sys.executable, "-m", "rbchain.cli", "study", *words], {
        "cwd": folder,
        "env": os.environ
        | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "RBCHAIN_TEST_GATE": str(folder / "gate")},
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
    }


def files_of(folder):
    """Every file of the results by its name within the folder."""
    places = (folder / "results.zarr", folder / "checksums")
    files = [path for place in places for path in place.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.slow
def test_a_killed_and_resumed_study_gives_the_same_store(tmp_path):
    """It is killed three times; the same command continues it. `benchmarks/kill_study.py` kills at more moments."""
    words = ["run", "study.toml", "--out", "out", "--chunk", "500"]
    for folder in ("undisturbed", "killed"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "study.toml").write_text(STUDY.format(samples=40_000, std=0.05, more=""))
    arguments, settings = command(tmp_path / "undisturbed", *words)
    subprocess.run(arguments, **settings, check=True)
    expected = files_of(tmp_path / "undisturbed" / "out")
    arguments, settings = command(tmp_path / "killed", *words)
    out, finished = tmp_path / "killed" / "out", [0]
    for at_least in (1, 15, 50):
        (tmp_path / "killed" / "gate").write_text(str(at_least - finished[-1] + 5))
        with subprocess.Popen(arguments, **settings | {"stdout": subprocess.DEVNULL}) as running:
            while len(list((out / "results.zarr" / "status" / "c").glob("*"))) < at_least:
                assert running.poll() is None, "the study ended by itself"
                time.sleep(0.002)
            running.send_signal(signal.SIGKILL)
        finished.append(sum(name.startswith("checksums/") for name in files_of(out)))
    assert finished[-1] < 80
    (tmp_path / "killed" / "gate").unlink()
    subprocess.run(arguments, **settings, check=True)
    assert files_of(out) == expected


@pytest.fixture(scope="module")
def cluster():
    """A dask cluster of one worker in a process of its own."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs=50) as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["local", "processes", "dask"])
def test_a_study_interrupted_by_ctrl_c_can_be_resumed(executor, tmp_path, request):
    """A terminal sends SIGINT to the command and to all processes that it has started."""
    words = ["run", "study.toml", "--out", "out", "--chunk", "200", "--executor", executor]
    if executor == "dask":
        from distributed import Client

        words += ["--scheduler", request.getfixturevalue("cluster").scheduler_address]
    for folder in ("undisturbed", "interrupted"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "study.toml").write_text(STUDY.format(samples=10_000, std=0.05, more=""))
    arguments, settings = command(tmp_path / "undisturbed", *words)
    subprocess.run(arguments, **settings, check=True)
    arguments, settings = command(tmp_path / "interrupted", *words)
    out, gate = tmp_path / "interrupted" / "out", tmp_path / "interrupted" / "gate"
    gate.write_text("3")
    if executor == "dask":
        with Client(request.getfixturevalue("cluster")) as client:
            client.run(use, str(gate))
    running = subprocess.Popen(arguments, **settings, start_new_session=True)
    while not list((out / "checksums").glob("*.json")):
        assert running.poll() is None, running.communicate()[0]
        time.sleep(0.002)
    os.killpg(running.pid, signal.SIGINT)
    said = running.communicate(timeout=HANG_LIMIT)[0].decode()
    assert running.returncode == 130
    assert said.count("rbchain: interrupted; run the same command again to resume") == 1
    assert "Traceback" not in said
    wait_for_the_end_of(running.pid)
    status, settings = command(tmp_path / "interrupted", "status", "out")
    assert "not finished" in subprocess.run(status, **settings, check=True).stdout.decode()
    assert len(list((out / "checksums").iterdir())) < 50
    gate.unlink()
    arguments, settings = command(tmp_path / "interrupted", *words)
    subprocess.run(arguments, **settings, check=True)
    assert files_of(out) == files_of(tmp_path / "undisturbed" / "out")


INTERRUPT_A_WRITER = """
import contextlib, random, signal, sys
from rbchain.study.run.chunks import Writer

class Collector:
    def store_chunk(self, chunk, outputs):
        return 1

sys.setswitchinterval(1e-6)  # the threads meet at every instruction
signal.signal(signal.SIGALRM, signal.default_int_handler)
for _ in range(500):
    with contextlib.suppress(KeyboardInterrupt), contextlib.closing(Writer(Collector())) as writer:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-4, 3e-3))
        while True:
            writer.wait()
            writer.begin(0, {})
"""


def test_ctrl_c_at_any_instruction_does_not_block_the_thread_that_stores():
    """With a ThreadPoolExecutor instead, one of about 1,000 interrupts blocks both threads for ever."""
    subprocess.run([sys.executable, "-c", INTERRUPT_A_WRITER], check=True, timeout=HANG_LIMIT)


def wait_for_the_end_of(group):
    """Wait until no process of the group is left."""
    deadline = time.monotonic() + HANG_LIMIT
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
    pytest.fail("a process outlives the command that started it")


def test_a_changed_study_is_refused_with_the_changed_key(arm, rod, tmp_path):
    swinging(arm).run(tmp_path)
    for changed, words in (
        ({"seed": 1}, "seed was 0, is 1"),
        ({"samples": 149}, "samples is 149, but .* contains this study with 150 samples"),
        ({"vary": {"*.mass_and_inertia": NORMAL} | START}, r"vary\.\*\.mass_and_inertia\.how was 'multiply', is None"),
        ({"model": rb.Model.serial_chain(2, mass=0.2)}, "model.sha256 was"),
        ({"simulate": RK4 | {"step": 0.005}}, "simulate.step was 0.01, is 0.005"),
        ({"measures": [HEIGHT | {"axis": "x"}]}, r"measures\[0\].axis was 'y', is 'x'"),
    ):
        with pytest.raises(rb.StudyError, match=words):
            swinging(arm, **changed).run(tmp_path)
    assert swinging(arm).run(tmp_path).sizes["sample"] == 150


@pytest.mark.slow
def test_a_study_stops_early_at_the_same_sample_for_any_chunk(arm, tmp_path):
    stop = {"measure": "height", "half_width": 0.0005, "confidence": 0.95}
    study = swinging(arm, samples=20_000, stop_when=stop)
    expected = study.run(chunk=20_000)
    n = expected.sizes["sample"]
    assert 1024 < n < 20_000
    assert n % 1024 == 0
    values = expected.height.values
    low, high = stats.t.interval(0.95, n - 1, values.mean(), stats.sem(values))
    assert (high - low) / 2 <= 0.0005
    before = values[: n - 1024]
    assert np.subtract(*stats.t.interval(0.95, before.size - 1, before.mean(), stats.sem(before))[::-1]) / 2 > 0.0005
    for place, settings in (("a", {"chunk": 300}), ("b", {"chunk": 3000})):
        check_same(study.run(tmp_path / place, **settings), expected)
        check_same(study.run(tmp_path / place, **settings), expected)  # again, with all chunks done
    check_same(study.run(tmp_path / "c", chunk=300, executor="processes", workers=2), expected)


def test_a_failed_sample_is_recorded_and_the_study_continues(arm):
    """Some samples have springs that are too stiff for the step, or negative masses."""
    vary = {"link1.stiffness": rb.Discrete([1.0, 1e9]), "link2.mass": rb.Discrete([0.12, 0.12, 0.12, -0.1])}
    results = swinging(arm, vary=vary, samples=120).run(chunk=50, on_failure="ignore")
    stiff, impossible = results.parameters[:, 0] > 1.0, results.parameters[:, 1] < 0.0
    status = results.status.values
    assert np.array_equal(status == 6, impossible)
    assert np.array_equal(np.isin(status, (2, 5)), stiff & ~impossible)
    assert np.array_equal(np.isnan(results.height), status != 0)
    assert (results.end_time[status == 0] == 0.5).all()
    assert (results.end_time[status != 0] < 0.5).all()
    statistics = json.loads(results.attrs["statistics"])
    assert statistics["failures"] == (status != 0).sum()
    assert statistics["of"]["height"]["count"] == (status == 0).sum()


def test_a_single_sample_equals_the_sample_in_the_study(arm):
    study = swinging(arm)
    results = study.run()
    for k in (0, 77, 149):
        drawn, model, motion = study.sample(k, save_at=6)
        assert list(drawn.values()) == results.parameters[k].values.tolist()
        assert np.array_equal(motion.q[-1], results.q_final[k])
        assert model.batch_shape == ()
        assert model.mass.tolist() == [0.1 * drawn["link1.mass_and_inertia"], 0.1 * drawn["link2.mass_and_inertia"]]
        assert np.abs(motion.tau).max() == 0.0
    with pytest.raises(rb.StudyError, match="sample is 150; expected a whole number from 0 to 149"):
        study.sample(150)


def test_valid_samples_can_be_inspected_and_invalid_ones_are_named(arm):
    odd = {"*.mass": rb.Dispersion(rb.Discrete([0.2, 0.3, -0.1]), shared=True)}
    study = swinging(arm, vary=odd, samples=30)
    status = study.run(on_failure="ignore").status.values
    for k in range(6):
        if status[k] == 0:
            assert study.sample(k)[2].success
        else:
            with pytest.raises(rb.StudyError, match=f"sample {k} has invalid parameters: body 'link1'"):
                study.sample(k)


def test_a_study_without_dispersions_runs(arm, tmp_path):
    results = swinging(arm, vary={}, samples=3).run(tmp_path)
    assert np.unique(results.height).size == 1


def test_a_study_does_not_stop_early_on_equal_samples(arm):
    """A confidence interval of zero width means only that no value has varied yet."""
    stop = {"measure": "rare", "half_width": 1e-9}
    measures = [{"name": "rare", "quantity": "function", "function": lambda model, motion: np.zeros(len(motion.q))}]
    results = swinging(arm, samples=3000, measures=measures, stop_when=stop).run()
    assert results.sizes["sample"] == 3000


def test_a_chunk_of_nan_is_stored_and_checked_like_any_other(arm, tmp_path):
    """An event that never occurs has NaN as its time in all samples; their file is written and has a checksum."""
    study = swinging(arm, samples=20, events=[rb.Event("link1", value=100.0, stop=True)])
    results = study.run(tmp_path, chunk=10).load()
    assert np.isnan(results.event_time).all()
    assert (results.event_count == 0).all()
    (tmp_path / "results.zarr" / "event_time" / "c" / "1" / "0").unlink()
    with pytest.raises(rb.StudyError, match="event_time"):
        rb.load_results(tmp_path)
    with pytest.warns(UserWarning, match="recomputes 10 samples"):
        again = study.run(tmp_path, chunk=10)
    check_same(again, results)


def test_samples_stopped_by_an_event_keep_their_final_state(rod):
    """The rod falls from horizontal to vertical. The state at the event is the final state."""
    study = rb.Study(
        model=rod,
        samples=20,
        vary={"gravity.y": rb.Uniform(-15, -5)},
        simulate={"duration": 2.0, "method": "rk4", "step": 0.002},
        events=[rb.Event("link1", value=-np.pi / 2, stop=True)],
        measures=[{"name": "speed", "quantity": "velocity", "joint": "link1", "over": "peak"}],
    )
    results = study.run()
    assert (results.status == 4).all()
    assert np.allclose(results.q_final, -np.pi / 2, rtol=0, atol=1e-9)
    # the potential energy m g l / 2 has become kinetic energy, m l^2 / 3 w^2 / 2
    expected = np.sqrt(3 * -results.parameters[:, 0].values / 0.5)
    assert np.allclose(-results.qd_final[:, 0], expected, rtol=1e-8)
    assert np.allclose(results.speed, expected, rtol=1e-8)
    assert np.array_equal(results.end_time, results.event_time[:, 0])
    assert json.loads(results.attrs["statistics"])["failures"] == 0


def test_a_pendulum_of_random_length_has_the_mean_period_of_its_closed_form():
    """For a point mass on a string, a quarter of the period is K(sin(a / 2)) sqrt(l / g)."""
    point = rb.Model.serial_chain(1, inertia=rb.Inertia(1.0, cg=(1.0, 0, 0)), gravity=(10.0, 0, 0))
    lengths = stats.uniform(0.8, 0.4)
    study = rb.Study(
        model=point,
        samples=2000,
        vary={"*.cg.x": lengths},
        simulate={"duration": 0.7, "method": "rk4", "step": 0.002, "q": [0.4]},
        events=[rb.Event("link1", value=0.0, stop=True)],
    )
    results = study.run()
    factor = ellipk(np.sin(0.2) ** 2) / np.sqrt(10.0)
    assert np.allclose(results.event_time[:, 0], factor * np.sqrt(results.parameters[:, 0]), rtol=1e-9)
    statistics = json.loads(results.attrs["statistics"])["of"]["event_time"]
    mean = integrate.quad(lambda length: factor * np.sqrt(length) / 0.4, 0.8, 1.2)[0]
    assert abs(statistics["mean"][0] - mean) < 4 * np.sqrt(statistics["variance"][0] / 2000)
    for level, found, error in zip(
        (0.01, 0.05, 0.25, 0.5), statistics["quantiles"], statistics["quantile_errors"], strict=False
    ):
        exact = np.sort(results.event_time[:, 0])[int(np.ceil(level * 2000)) - 1]
        assert abs(found[0] - exact) <= error[0]


def test_a_linear_oscillator_has_the_variance_of_its_closed_form():
    """x(t) = x0 cos(w t) has the variance of x0 times cos^2; stratified samples are closer to it."""
    spring = rb.Model.serial_chain(1, inertia=rb.Inertia(1.0, inertia=(0.5, 0.5, 0.5)), gravity=(0, 0, 0))
    spring = spring.vary(stiffness=[8.0])
    given = {
        "model": spring,
        "samples": 4096,
        "vary": {"*.q": stats.norm(0.0, 0.2)},
        "simulate": {"duration": 0.3, "method": "rk4", "step": 0.005},
    }
    expected = 0.04 * np.cos(4.0 * 0.3) ** 2
    for design, allowed in (("random", 5 * np.sqrt(2 / 4096)), ("latin_hypercube", 5e-3), ("sobol", 5e-3)):
        results = rb.Study(**given, design=design).run()
        variance = json.loads(results.attrs["statistics"])["of"]["q_final"]["variance"][0]
        assert abs(variance / expected - 1) < allowed


def ishigami(model, motion):
    x, y, z = np.moveaxis(model.gravity, -1, 0)
    return np.sin(x) + 7 * np.sin(y) ** 2 + 0.1 * z**4 * np.sin(x)


def first_gravity(model, motion):
    return np.broadcast_to(model.gravity[..., 0], motion.status.shape)


def test_sensitivity_indices_agree_with_the_ishigami_function(rod):
    """Ishigami and Homma (1990): with a = 7, b = 0.1 the first-order indices are 0.3139, 0.4424 and 0."""
    study = rb.Study(
        model=rod,
        samples=10,
        vary={"gravity": rb.Uniform(-np.pi, np.pi)},
        simulate={"duration": 0.01, "method": "rk4", "step": 0.01, "save_at": 2},
        measures=[{"name": "ishigami", "quantity": "function", "function": ishigami}],
    )
    found = study.sobol_indices("ishigami", base_samples=4096)
    assert np.allclose(found.S1, [0.3139, 0.4424, 0.0], atol=0.02)
    assert np.allclose(found.ST, [0.5576, 0.4424, 0.2437], atol=0.02)
    effects = study.morris("ishigami", base_samples=200)
    assert list(effects.parameter.values) == ["gravity.x", "gravity.y", "gravity.z"]
    assert effects.mu_star.values.argmin() != 1
    with pytest.raises(rb.StudyError, match=r"measure is 'nothing'; expected one of the measures .*: \['ishigami'\]"):
        study.sobol_indices("nothing")


@pytest.mark.parametrize(
    ("distribution", "span"),
    [
        (rb.Uniform(10.0, 12.0), 2.0),
        (rb.Triangular(-1.0, 0.0, 1.0), None),
        (rb.Normal(0.0, 2.0), None),
    ],
)
def test_effects_of_morris_are_per_range_of_the_parameter(rod, distribution, span):
    """For a linear measure, a step of two thirds of the levels changes it by a difference of two quantiles."""
    study = rb.Study(
        model=rod,
        samples=10,
        vary={"gravity.x": distribution},
        simulate={"duration": 0.01, "method": "rk4", "step": 0.01, "save_at": 2},
        measures=[{"name": "x", "quantity": "function", "function": first_gravity}],
    )
    effects = study.morris("x", base_samples=50)
    inside = (0.005, 0.995) if isinstance(distribution, rb.Normal) else (0.0, 1.0)
    levels = distribution.ppf(np.linspace(*inside, 4))
    steps = (levels[2:] - levels[:2]) / (2 / 3)
    assert steps.min() - 1e-12 <= effects.mu.item() <= steps.max() + 1e-12
    assert effects.mu_star.item() == pytest.approx(effects.mu.item(), rel=1e-12)
    if span is not None:
        assert effects.mu.item() == pytest.approx(span, rel=1e-12)


def test_memory_is_bounded_by_the_chunk(arm):
    plan = swinging(arm, samples=10**9, outputs={"motion": True}).plan
    size = chunk_size(plan, 1e7)
    assert 4 * size * plan.bytes_per_sample() <= 1e7 < 8 * size * plan.bytes_per_sample()
    with pytest.raises(rb.StudyError, match=r"memory is 10 bytes; expected at least .* bytes, which one sample needs"):
        chunk_size(plan, 10)


def test_the_store_is_created_completely_or_not_at_all(arm, tmp_path, monkeypatch):
    """A run that is interrupted while it creates its store leaves no store."""

    def cut_off(*arguments, **settings):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.rename", cut_off)
        with pytest.raises(KeyboardInterrupt):
            swinging(arm).run(tmp_path)
    assert not Store.exists(tmp_path)
    check_same(swinging(arm).run(tmp_path), swinging(arm).run())
    with pytest.raises(rb.StudyError, match="elsewhere contains no results of a study"):
        rb.load_results(tmp_path / "elsewhere")


@pytest.mark.slow_cases("rk4")
@pytest.mark.plain_python
@pytest.mark.parametrize("method", ["implicit", "rk4"])
def test_a_single_sample_of_a_study_with_fixed_steps_has_the_steps_of_the_study(method):
    """Saved times divide fixed steps."""
    study = rb.Study(
        model=rb.Model.serial_chain(2),
        samples=8,
        vary={"*.q": rb.Uniform(-1.0, 1.0)},
        simulate={"duration": 1.0, "method": method, "step": 0.05, "save_at": 11},
    )
    ends = study.run().q_final.values
    np.testing.assert_array_equal(study.sample(7)[2].q[-1], ends[7])
    np.testing.assert_array_equal(study.motions(4).q[:, -1], ends[:4])
    with contextlib.suppress(rb.StudyError):  # other times are refused if they change the motion
        np.testing.assert_array_equal(study.sample(7, save_at=21)[2].q[-1], ends[7])
