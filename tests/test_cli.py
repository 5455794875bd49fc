"""The command line: its output, files, refusals and exit codes."""

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from rich.console import Console

import rbchain as rb
from rbchain import cli
from rbchain.cli.output import table_of_numbers
from rbchain.compiling.levels import LANE_WIDTHS
from rbchain.simulate import methods

from .conftest import HANG_LIMIT

PUMA = str(Path(__file__).parents[1] / "examples" / "puma560.urdf")
DONE, SOME_FAILED, REFUSED = 0, 1, 2

ARM = """<robot name="{name}">
  <link name="base"/>
  <link name="{link}"><inertial><origin xyz="0 0 -1"/><mass value="2"/>
    <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
  <joint name="{joint}" type="{kind}"><parent link="base"/><child link="{link}"/><axis xyz="{axis}"/></joint>
</robot>"""


@pytest.fixture
def arm(tmp_path):
    def write(*, name="arm", link="bob", joint="hinge", kind="revolute", axis="0 1 0", text=ARM):
        path = tmp_path / "arm.urdf"
        path.write_text(text.format(name=name, link=link, joint=joint, kind=kind, axis=axis))
        return str(path)

    return write


@pytest.fixture
def run(capsys, monkeypatch):
    """Run the command line in a wide terminal: exit code, standard output, standard error."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments):
        try:
            code = cli.main([str(argument) for argument in arguments])
        except SystemExit as leaving:  # argparse exits in this way
            code = leaving.code
        return code, *capsys.readouterr()

    return run


def number(output, row):
    """The number in one row of the table."""
    found = re.search(rf"{row}\W*?([\d,.]+(?:e[+-]\d+)?)", output)
    assert found, f"no row {row!r} in\n{output}"
    return float(found[1].replace(",", ""))


# --- simulate ---------------------------------------------------------------------------------------------------------


def test_simulate_prints_a_table_of_results(run):
    code, output, _ = run("simulate", PUMA, "--batch", 7, "--duration", 0.1)
    assert code == DONE
    assert number(output, "samples") == 7
    assert number(output, "steps") > 7
    assert number(output, "rejections") >= 0
    assert number(output, "evaluations") > 6 * 7
    assert number(output, "evaluations per second") > 0
    assert 0 < number(output, "worst energy error") < 1e-5
    assert 0 < number(output, "worst force-balance residual") < 1e-9
    assert number(output, "failures") == 0


def test_simulate_shows_progress(run, caplog):
    """Outside a terminal, a log line shows it, and the table is the only output."""
    with caplog.at_level("INFO", logger="rbchain"):
        _, output, _ = run("simulate", PUMA, "--batch", 3, "--duration", 0.05)
    assert "Simulating puma560: 3/3" in caplog.text
    assert "3/3" not in output


def test_the_table_describes_the_contents_of_the_file(run, tmp_path):
    out = tmp_path / "swing.npz"
    _, output, _ = run("simulate", PUMA, "--batch", 9, "--duration", 0.2, "--spread", 0.5, "--out", out)
    with np.load(out) as saved:
        for row in ("steps", "rejections", "evaluations"):
            assert saved[row].shape == (9,)
            assert number(output, row) == saved[row].sum()


def test_the_file_holds_the_motions_of_the_model(run, tmp_path):
    out = tmp_path / "swing.npz"
    code, _, _ = run("simulate", PUMA, "--batch", 4, "--duration", 0.3, "--seed", 3, "--out", out)
    assert code == DONE
    with pytest.warns(UserWarning, match="link3"):
        model = rb.load(PUMA)
    with np.load(out) as saved:
        t, q, qd, status = saved["t"], saved["q"], saved["qd"], saved["status"]
    assert (t[0], t[-1]) == (0.0, 0.3)
    assert q.shape == qd.shape == (4, len(t), 6)
    np.testing.assert_array_equal(status, np.zeros(4))
    again = model.simulate(q[:, 0], qd[:, 0], 0.3, save_at=t)
    np.testing.assert_allclose(q, again.q, atol=1e-6)
    np.testing.assert_allclose(qd, again.qd, atol=1e-5)


def test_the_saved_file_is_the_file_of_a_motion(run, arm, tmp_path):
    out, file = tmp_path / "x.npz", arm()
    run("simulate", file, "--batch", 1001, "--duration", 0.02, "--save-at", 3, "--out", out)
    motion = rb.load_motion(out)
    again = motion.model.simulate(motion.q[:, 0], motion.qd[:, 0], 0.02, save_at=3)
    for name in ("t", "q", "qd", "tau", "qdd", "status", "steps", "end_q"):
        np.testing.assert_array_equal(getattr(motion, name), getattr(again, name))


def test_the_same_seed_gives_the_same_bits(run, tmp_path):
    files = [tmp_path / f"{i}.npz" for i in range(2)]
    for out in files:
        run("simulate", PUMA, "--batch", 20, "--duration", 0.1, "--seed", 5, "--out", out)
    with np.load(files[0]) as one, np.load(files[1]) as other:
        assert set(one) == set(other)
        for name in one:
            np.testing.assert_array_equal(one[name], other[name])


def test_another_seed_gives_other_motions(run, tmp_path):
    saved = []
    for seed in (5, 6):
        run("simulate", PUMA, "--batch", 3, "--duration", 0.05, "--seed", seed, "--out", tmp_path / "x.npz")
        with np.load(tmp_path / "x.npz") as file:
            saved.append(file["q"])
    assert (saved[0][:, 0] != saved[1][:, 0]).all()


def test_the_spread_is_the_standard_deviation_of_the_start(run, arm, tmp_path):
    out = tmp_path / "x.npz"
    run("simulate", arm(), "--batch", 3000, "--duration", 0.001, "--spread", 0.25, "--save-at", 2, "--out", out)
    with np.load(out) as saved:
        for start in (saved["q"][:, 0], saved["qd"][:, 0]):
            assert start.std() == pytest.approx(0.25, rel=0.08)
            assert abs(start.mean()) < 0.03


def test_a_batch_computed_in_several_parts_is_complete(run, arm, tmp_path):
    """The batch is computed in parts for the progress bar; each sample must be computed once."""
    out = tmp_path / "x.npz"
    code, output, _ = run("simulate", arm(), "--batch", 2501, "--duration", 0.01, "--save-at", 2, "--out", out)
    assert code == DONE
    assert number(output, "samples") == 2501
    with np.load(out) as saved:
        assert saved["q"].shape == (2501, 2, 1)
        assert len(np.unique(saved["q"][:, 0])) == 2501


@pytest.mark.slow
@pytest.mark.plain_python
def test_the_fixed_step_method_uses_the_given_step(run, arm, tmp_path):
    out = tmp_path / "x.npz"
    code, _, _ = run(
        "simulate",
        arm(),
        "--batch",
        2,
        "--duration",
        1,
        "--method",
        "rk4",
        "--step",
        0.01,
        "--save-at",
        2,
        "--out",
        out,
    )
    assert code == DONE
    with np.load(out) as saved:
        np.testing.assert_array_equal(saved["steps"], [100, 100])
        np.testing.assert_array_equal(saved["evaluations"], [400, 400])


METHODS = {
    "rk45": ("--rtol", 1e-4, "--atol", 1e-6, "--max-step", 0.001, "--max-steps", 50),
    "rosenbrock": ("--rtol", 1e-4, "--atol", 1e-6, "--max-steps", 50),
    "dop853": ("--rtol", 1e-4, "--atol", 1e-6, "--max-steps", 50),
    "radau": ("--rtol", 1e-4, "--atol", 1e-6, "--max-steps", 50),
    "rk4": ("--step", 0.01),
    "implicit": ("--step", 0.01),
    "moreau": ("--step", 0.01, "--atol", 1e-8),
}


@pytest.mark.plain_python
@pytest.mark.parametrize("method", METHODS)
def test_simulate_passes_the_settings_of_each_method(run, arm, tmp_path, method):
    out = tmp_path / "x.npz"
    options = ("--batch", 1, "--duration", 0.02, "--save-at", 2, "--method", method, *METHODS[method], "--out", out)
    assert run("simulate", arm(), *options)[0] == DONE
    names, values = METHODS[method][::2], METHODS[method][1::2]
    settings = {name.strip("-").replace("-", "_"): value for name, value in zip(names, values, strict=True)}
    with np.load(out) as saved:
        again = rb.load(arm()).simulate(saved["q"][:, 0], saved["qd"][:, 0], 0.02, save_at=2, method=method, **settings)
        np.testing.assert_array_equal(saved["q"], again.q)
        np.testing.assert_array_equal(saved["steps"], again.steps)


def test_simulate_offers_every_method(run):
    listed = re.search(r"--method \{(.*?)\}", run("simulate", "--help")[1])[1].split(",")
    assert set(listed) == set(METHODS) == set(methods.METHODS)


@pytest.mark.parametrize("method", ["rk4", "implicit", "moreau"])
def test_a_number_of_steps_for_a_fixed_step_method_is_refused(run, arm, method):
    options = ("--batch", 2, "--duration", 0.01, "--method", method, "--step", 0.01, "--max-steps", 5)
    assert_refused(run("simulate", arm(), *options), "--max-steps is 5", f"--method {method}; remove --max-steps")
    assert_refused(run("simulate", arm(), *options[:-4]), "--step is missing", f"--method {method}")


def test_no_number_of_a_table_is_cut_off_in_80_columns(capsys):
    numbers = [f"{sign * 1.72413e-05 * 10**k:.5g}" for k, sign in enumerate((-1, 1, -1, -1, -1))]
    table = table_of_numbers("title", ("measure", *"abcde", "unit"), texts=("measure", "unit"))
    table.add_row("peak reaction force at the shoulder", *numbers, "N m s/rad")
    Console(width=80).print(table)
    output = capsys.readouterr().out
    assert max(map(len, output.splitlines())) <= 80
    assert "…" not in output
    for text in (*numbers, "reaction", "shoulder", "N m"):
        assert text in output
    Console(width=40).print(table)  # the digits of a number continue in the next line
    assert "…" not in capsys.readouterr().out


def test_the_energy_error_of_a_mechanism_at_rest_is_zero(run, arm):
    """A slide perpendicular to gravity stays at rest, so there is no kinetic energy to divide by."""
    code, output, errors = run("simulate", arm(kind="prismatic", axis="1 0 0"), "--batch", 2, "--spread", 0)
    assert code == DONE
    assert "nan" not in output
    assert "Warning" not in errors
    assert number(output, "worst energy error") == 0


SINGULAR = ARM.replace("</robot>", '<link name="tip"/><joint name="wrist" type="revolute">')
SINGULAR += '<parent link="{link}"/><child link="tip"/></joint></robot>'


@pytest.mark.filterwarnings("ignore:.*no mass, inertia or rotor resists")
def test_a_mechanism_without_inertia_is_refused_with_the_name_of_its_body(run, arm, tmp_path):
    code, _, errors = run("simulate", arm(text=SINGULAR), "--batch", 3, "--duration", 0.1)
    assert code == REFUSED
    assert "resists the motion of ['tip']" in " ".join(errors.split())


@pytest.mark.plain_python
def test_failed_samples_are_counted_and_give_exit_code_1(run, arm, tmp_path):
    """The damper is too strong for a step of this length."""
    out, stiff = tmp_path / "x.npz", ARM.replace("</joint>", '<dynamics damping="1e6"/></joint>')
    given = "simulate", arm(text=stiff), "--batch", 3, "--duration", 0.1, "--method", "rk4", "--step", 0.01
    code, output, _ = run(*given, "--out", out)
    assert code == SOME_FAILED
    assert number(output, "failures") == 3
    assert "too long for springs, damping, friction or controller gains" in " ".join(output.split())
    with np.load(out) as saved:
        assert (saved["status"] != 0).all()
        assert np.isnan(saved["q"][:, -1]).all()


def test_the_name_of_the_saved_file_is_printed_with_its_ending(run, arm, tmp_path):
    code, output, _ = run("simulate", arm(), "--batch", 1, "--duration", 0.01, "--out", tmp_path / "swing")
    assert code == DONE
    told = re.search(r"saved (\S*swing\S*)", output.replace("\n", ""))
    assert Path(told[1]).exists()


# --- info -------------------------------------------------------------------------------------------------------------


def test_info_prints_bodies_joints_and_frames(run):
    code, output, _ = run("info", PUMA)
    assert code == DONE
    for name in (*(f"link{i}" for i in range(1, 7)), "waist", "shoulder", "elbow", "flange_roll", "base", "tool0"):
        assert name in output
    assert "23.45" in output


def test_info_does_not_cut_the_lines_of_a_deep_tree(run, tmp_path):
    builder, parent = rb.ModelBuilder(), None
    for i in range(20):
        builder.add_body(
            f"a_long_name_of_a_body_{i}", parent=parent, joint=rb.Revolute(), inertia=rb.Inertia.sphere(1, mass=2)
        )
        parent = f"a_long_name_of_a_body_{i}"
    rb.save(builder.build(), tmp_path / "deep.toml")
    code, output, _ = run("info", tmp_path / "deep.toml")
    assert code == DONE
    assert output.count("; 2 kg\n") == 20


def test_info_lists_the_constraints(run, tmp_path):
    builder, ends = rb.ModelBuilder(), {"point_a": (0, 0, 1), "point_b": (0, 0, 1)}
    for name in ("left", "right"):
        builder.add_body(name, joint=rb.Revolute(), inertia=rb.Inertia.rod(1.0, mass=1.0))
    builder.add_constraint(rb.DistanceConstraint("strut", "left", "right", **ends, length=1.25))
    builder.add_constraint(rb.BallConstraint("pin", None, "right", **ends))
    builder.add_constraint(rb.CouplerConstraint("gear", "left", "right", ratio=-0.5, offset=-0.25))
    builder.add_constraint(rb.CouplerConstraint("belt", "left", "right", ratio=2))
    rb.save(builder.build(), tmp_path / "loops.toml")
    code, output, _ = run("info", tmp_path / "loops.toml")
    assert code == DONE
    lines = [line.lstrip("│├└─ ").rstrip() for line in output.splitlines()]
    assert lines[lines.index("constraints") + 1 :] == [
        "strut  distance: left - right, 1.25 m",
        "pin  ball: world - right",
        "gear  coupler: left = -0.5 right - 0.25",
        "belt  coupler: left = 2 right",
    ]


@pytest.mark.plain_python
def test_closed_chains_are_simulated_from_closed_states(run, tmp_path):
    builder = rb.ModelBuilder()
    for name in ("left", "right"):
        builder.add_body(name, joint=rb.Revolute(), inertia=rb.Inertia.rod(1.0, mass=1.0))
    builder.add_constraint(rb.CouplerConstraint("gear", "left", "right", ratio=-0.5, offset=0.2))
    rb.save(builder.build(), tmp_path / "loops.toml")
    options = ("--batch", 3, "--duration", 0.02, "--method", "rk4", "--step", 0.01, "--out", tmp_path / "motion.npz")
    assert run("simulate", tmp_path / "loops.toml", *options)[0] == DONE
    motion = np.load(tmp_path / "motion.npz")
    np.testing.assert_allclose(motion["q"][..., 0] + 0.5 * motion["q"][..., 1], 0.2, atol=1e-12)
    assert np.ptp(motion["q"][:, 0, 0]) > 0.01


def test_info_shows_the_parent_of_each_body(run, arm):
    text = ARM.replace("</robot>", '<link name="b"/><link name="c"/><link name="d"/>')
    for name, parent, kind in (("b", "base", "prismatic"), ("c", "{link}", "revolute"), ("d", "c", "fixed")):
        text += f'<joint name="to_{name}" type="{kind}"><parent link="{parent}"/><child link="{name}"/></joint>'
    code, output, _ = run("info", arm(text=text + "</robot>"))
    assert code == DONE
    indent = {}
    for line in output.splitlines():
        if found := re.match(r"[\W_]*(?:frame )?(\w+)", line):
            indent.setdefault(found[1], found.start(1))
    assert indent["bob"] == indent["b"] < indent["c"] < indent["d"]


def test_a_tolerance_for_the_fixed_step_method_is_refused(run, arm):
    options = ("--batch", 2, "--duration", 0.01, "--method", "rk4", "--step", 0.01, "--rtol", 1e-3)
    assert_refused(run("simulate", arm(), *options), "rtol")


@pytest.mark.plain_python
def test_simulate_starts_from_given_positions_and_velocities(run, tmp_path):
    file, out = tmp_path / "arm.toml", tmp_path / "swing.npz"
    model = rb.Model.serial_chain(2)
    rb.save(model, file)
    options = ("--duration", 0.05, "--method", "rk4", "--step", 0.01, "--out", out)
    assert run("simulate", file, "--q=-0.3,0.7", "--qd", "1.5,-2", *options)[0] == DONE
    found = rb.load_motion(out)
    expected = model.simulate([[-0.3, 0.7]], [[1.5, -2.0]], 0.05, method="rk4", step=0.01)
    np.testing.assert_array_equal(found.q, expected.q)
    np.testing.assert_array_equal(found.qd, expected.qd)
    assert run("simulate", file, "--qd", "1.5,-2", *options)[0] == DONE
    motion = rb.load_motion(out)
    np.testing.assert_array_equal([motion.q[:, 0], motion.qd[:, 0]], [[[0.0, 0.0]], [[1.5, -2.0]]])


@pytest.mark.plain_python
def test_given_states_can_be_the_centers_of_random_ones(run, tmp_path):
    file, out = tmp_path / "arm.toml", tmp_path / "swing.npz"
    rb.save(rb.Model.serial_chain(2), file)
    options = ("--batch", 5, "--seed", 2, "--spread", 0.1, "--duration", 0.01, "--save-at", 2, "--out", out)
    options += ("--method", "rk4", "--step", 0.01)
    assert run("simulate", file, *options)[0] == DONE
    around_zero = rb.load_motion(out)
    assert run("simulate", file, "--q", "0.5,-0.2", "--qd", "1,2", *options)[0] == DONE
    around_given = rb.load_motion(out)
    np.testing.assert_allclose(around_given.q[:, 0] - around_zero.q[:, 0], [[0.5, -0.2]] * 5, rtol=0, atol=1e-15)
    np.testing.assert_allclose(around_given.qd[:, 0] - around_zero.qd[:, 0], [[1, 2]] * 5, rtol=0, atol=1e-15)


@pytest.mark.plain_python
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--q", "0.1"), "--q has 1 number; expected 2: link1 in rad, link2 in rad"),
        (("--qd", "0.1,0.2,0.3"), "--qd has 3 numbers; expected 2: link1 in rad/s, link2 in rad/s"),
        (("--q", "0.1,fast"), "--q: 'fast' is not a finite number; expected numbers that are separated by commas"),
        (("--q", "0.1,nan"), "--q: 'nan' is not a finite number"),
        (("--q", "0.1,,0.2"), "--q: '' is not a finite number"),
        (("--q", "0.1,0.2", "--batch", 3), "--batch is 3, but all samples would start from the same state"),
    ],
)
def test_states_that_do_not_fit_the_mechanism_are_refused(run, tmp_path, options, message):
    rb.save(rb.Model.serial_chain(2), tmp_path / "arm.toml")
    assert_refused(run("simulate", tmp_path / "arm.toml", *options), message)


@pytest.mark.parametrize("command", ["info", "simulate"])
@pytest.mark.parametrize("name", ["bob[red]", "[/dim]", "[bold]x[/bold]", "link[0]", "[link=http://x]y", "a\\[b]"])
def test_names_with_brackets_are_printed_unchanged(run, arm, command, name):
    """Brackets in names are not markup."""
    more = ("--batch", 1, "--duration", 0.01) if command == "simulate" else ()
    code, output, _ = run(command, arm(name=name, link=name, joint="joint " + name), *more)
    assert code == DONE
    assert name in output
    assert command == "simulate" or f"joint {name}" in output


def test_a_file_name_with_brackets_is_printed_unchanged(run, arm, tmp_path):
    out = tmp_path / "run[red].npz"
    code, output, _ = run("simulate", arm(), "--batch", 1, "--duration", 0.01, "--out", out)
    assert code == DONE
    assert out.exists()
    assert "run[red].npz" in output.replace("\n", "")


def test_each_warning_about_a_file_is_one_line_on_stderr(run):
    code, output, errors = run("info", PUMA)
    assert code == DONE
    assert "warning" not in output
    assert len(errors.splitlines()) == 1
    assert "link3" in errors


# --- what is refused --------------------------------------------------------------------------------------------------


def assert_refused(result, *words):
    """Exit code 2 and one sentence of what is wrong, with no traceback and no table."""
    code, output, errors = result
    assert code == REFUSED
    assert "Traceback" not in errors
    assert "failures" not in output
    told = [line for line in errors.splitlines() if "error:" in line]
    assert len(told) == 1, errors
    for word in words:
        assert word in told[0]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--batch", 0),
        ("--batch", -5),
        ("--batch", "many"),
        ("--batch", 1.5),
        ("--batch", 10**13),
        ("--batch", 10**30),
        ("--duration", -1),
        ("--duration", 0),
        ("--duration", "nan"),
        ("--duration", "inf"),
        ("--duration", "long"),
        ("--spread", "nan"),
        ("--spread", "inf"),
        ("--spread", -0.1),
        ("--seed", -1),
        ("--seed", "x"),
        ("--method", "euler"),
        ("--rtol", -1),
        ("--rtol", "nan"),
        ("--atol", -1),
        ("--save-at", 1),
        ("--save-at", 0),
        ("--save-at", -3),
        ("--samples", 5),
    ],
)
def test_an_invalid_value_is_refused_with_the_name_of_the_option(run, arm, option, value):
    short = () if option in ("--batch", "--duration") else ("--batch", 2, "--duration", 0.01)
    names = {"--samples": ("--save-at",)}.get(option, (option.strip("-"),))
    result = run("simulate", arm(), *short, f"{option}={value}")
    assert_refused(result)
    assert any(name in result[2] for name in names), result[2]


@pytest.mark.parametrize("step", [None, 0, -0.1, "nan", "inf"])
def test_an_invalid_step_of_the_fixed_step_method_is_refused(run, arm, step):
    given = () if step is None else (f"--step={step}",)
    assert_refused(run("simulate", arm(), "--batch", 2, "--duration", 0.01, "--method", "rk4", *given), "step")


def test_a_step_for_an_adaptive_method_is_refused(run, arm):
    """Ignoring the step would give another motion than requested."""
    assert_refused(run("simulate", arm(), "--batch", 2, "--duration", 0.01, "--step", 0.001), "step")


@pytest.mark.parametrize("command", ["info", "simulate"])
def test_a_missing_file_is_refused_by_its_name(run, tmp_path, command):
    assert_refused(run(command, tmp_path / "nowhere.urdf"), "nowhere.urdf")


@pytest.mark.parametrize("command", ["info", "simulate"])
@pytest.mark.parametrize(
    "content", ["", "no xml", "<sdf/>", "<robot name='x'/>", "\0\1\2", ARM.replace("xyz", "xzy").replace("2", "two")]
)
def test_a_file_that_is_not_a_urdf_is_refused_by_its_name(run, tmp_path, command, content):
    path = tmp_path / "thing.urdf"
    path.write_text(content)
    assert_refused(run(command, path), "thing.urdf")


@pytest.mark.parametrize("command", ["info", "simulate"])
def test_a_file_of_another_type_is_refused_by_its_name(run, tmp_path, command):
    path = tmp_path / "thing.txt"
    path.write_text(ARM)
    assert_refused(run(command, path), "thing.txt")


@pytest.mark.parametrize("command", ["info", "simulate"])
def test_a_folder_is_refused_by_its_name(run, tmp_path, command):
    path = tmp_path / "folder.urdf"
    path.mkdir()
    assert_refused(run(command, path), "folder.urdf")


def test_an_unphysical_inertia_is_refused_on_request(run):
    assert_refused(run("info", PUMA, "--nonphysical-inertia", "refuse"), "link3")


@pytest.mark.parametrize("place", ["nowhere/x.npz", "file/x.npz", "."], ids=["no folder", "file as folder", "a folder"])
def test_an_output_that_cannot_be_written_is_refused_before_the_computation(run, arm, tmp_path, monkeypatch, place):
    path = arm()
    (tmp_path / "file").write_text("here")

    def computed(*_, duration=0.0, **__):
        raise AssertionError("the motions were computed before --out was looked at")

    monkeypatch.setattr(rb.Model, "simulate", computed)
    assert_refused(run("simulate", path, "--batch", 2, "--out", tmp_path / place))


def test_a_refused_command_does_not_change_an_existing_file(run, arm, tmp_path):
    out = tmp_path / "x.npz"
    assert run("simulate", arm(), "--batch", 1, "--duration", 0.01, "--out", out)[0] == DONE
    before = out.read_bytes()
    assert_refused(run("simulate", arm(), "--batch", 1, "--duration", -1, "--out", out))
    assert out.read_bytes() == before


def test_a_refused_command_leaves_no_file_behind(run, arm, tmp_path):
    out = tmp_path / "x.npz"
    assert_refused(run("simulate", arm(), "--batch", 1, "--duration", -1, "--out", out))
    assert not out.exists()


@pytest.mark.parametrize("arguments", [(), ("fly",), ("info",), ("simulate",), ("info", PUMA, "--wings")])
def test_an_unknown_command_is_refused(run, arguments):
    assert_refused(run(*arguments))


def test_help_shows_examples_of_several_commands_and_exit_codes(run):
    code, output, errors = run("--help")
    assert code == DONE
    assert errors == ""
    assert re.search(r"rbchain simulate \S+\.urdf .*--batch", output)
    assert re.search(r"rbchain info \S+\.urdf", output)
    assert "exit code" in output


STUDY_VERBS = ("run", "check", "resume", "merge", "indices", "probability", "sample", "status", "report")
STUDY_COMMANDS = [f"study {verb}" for verb in STUDY_VERBS]


@pytest.mark.parametrize("command", ["simulate", "info", "view", "convert", "warm", "doctor", "study", *STUDY_COMMANDS])
def test_help_of_a_command_shows_its_own_examples_and_exit_codes(run, command):
    code, output, errors = run(*command.split(), "--help")
    assert code == DONE
    assert errors == ""
    examples = re.search(r"^examples?:\n((?:  .+\n)+)", output, re.MULTILINE)[1].splitlines()
    assert len(examples) in (1, 2)
    assert all(f"{example} ".startswith(f"  rbchain {command} ") for example in examples)
    assert "exit code" in output


@pytest.mark.parametrize(
    "option", ["--batch", "--duration", "--spread", "--seed", "--q", "--qd", "--out", "--max-steps"]
)
def test_help_names_every_option(run, option):
    assert option in run("simulate", "--help")[1]


def test_the_module_can_be_run():
    """It runs in a process of its own, in another folder, and returns its exit code."""
    command = [sys.executable, "-m", "rbchain.cli", "info"]
    settings = {"capture_output": True, "text": True, "timeout": HANG_LIMIT}
    told = subprocess.run([*command, PUMA], check=False, **settings)
    assert told.returncode == DONE
    assert "tool0" in told.stdout
    refused = subprocess.run([*command, "info", "nowhere.urdf"], check=False, **settings)
    assert refused.returncode == REFUSED
    assert "nowhere.urdf" in refused.stderr
    assert "Traceback" not in refused.stderr


# --- doctor -----------------------------------------------------------------------------------------------------------


def test_doctor_prints_lanes_threads_cache_and_versions(run):
    code, output, _ = run("doctor")
    assert code == DONE
    assert number(output, "threads") == rb.get_num_threads()
    assert f"{LANE_WIDTHS['float64']} of float64, {LANE_WIDTHS['float32']} of float32" in output
    assert f"numba {numba.__version__}" in output
    assert "MB" in output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--out", "swing.html"], "--out writes a film of a trajectory, but --duration is missing; add it"),
        (["--duration", "nan"], "--duration is nan; expected a finite number of seconds above 0"),
        (["--duration", "1", "--out", "swing.avi"], "--out is swing.avi; expected a file that ends in one of .html"),
        (["--duration", "1", "--batch", "0"], "--batch is 0; expected a whole number of at least 1"),
    ],
)
def test_view_refuses_invalid_options(capsys, options, message):
    assert cli.main(["view", PUMA, *options]) == REFUSED
    assert message in " ".join(capsys.readouterr().err.split())


def test_view_writes_a_film(tmp_path, capsys):
    film = tmp_path / "swing.gif"
    file = tmp_path / "rod.toml"
    rb.save(rb.Model.serial_chain(1), file)
    assert cli.main(["view", str(file), "--duration", "0.1", "--batch", "3", "--out", str(film)]) == DONE
    assert film.stat().st_size > 1000
    assert "wrote" in capsys.readouterr().out


MIMIC = """<robot name="gripper"><link name="base"/><link name="rod">{link}</link><link name="finger">{link}</link>
  <joint name="hinge" type="continuous"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/></joint>
  <joint name="grip" type="continuous"><parent link="rod"/><child link="finger"/><axis xyz="0 1 0"/>
    <mimic joint="hinge" multiplier="-1"/></joint></robot>"""
LINK = """<inertial><origin xyz="0.1 0 0.3"/><mass value="2"/>
    <inertia ixx="0.2" iyy="0.3" izz="0.25" ixy="0" ixz="0" iyz="0"/></inertial>"""


@pytest.mark.slow
@pytest.mark.plain_python
def test_all_commands_close_the_loops_of_random_states(tmp_path, run):
    """`view` and `simulate` start from the same states, with the coupled joints in their places."""
    file, film, saved = tmp_path / "gripper.urdf", tmp_path / "gripper.html", tmp_path / "gripper.npz"
    file.write_text(MIMIC.format(link=LINK))
    options = file, "--duration", "0.02", "--batch", "2", "--seed", "3"
    assert run("simulate", *options, "--out", saved)[0] == DONE
    with np.load(saved) as motion:
        np.testing.assert_allclose(motion["q"][..., 1], -motion["q"][..., 0], rtol=0, atol=1e-10)
        assert np.abs(motion["q"][:, 0]).min() > 1e-3
    code, out, _ = run("view", *options, "--out", film)
    assert code == DONE, out
    assert film.stat().st_size > 1000
    assert run("info", file)[0] == DONE


def test_the_viewer_starts_with_closed_loops(tmp_path, monkeypatch, run):
    """The finger is 0.3 rad away from the neutral positions; the nearest ones have 0.15 rad at both joints."""
    shown = []

    def view(model, q=None, **_):
        shown.append(q)
        return SimpleNamespace(url="http://localhost", wait=lambda: None)

    monkeypatch.setattr(rb.Model, "view", view)
    file = tmp_path / "gripper.urdf"
    file.write_text(MIMIC.format(link=LINK).replace('multiplier="-1"', 'multiplier="-1" offset="0.3"'))
    assert run("view", file, "--no-browser")[0] == DONE
    np.testing.assert_allclose(shown, [[0.15, 0.15]], rtol=0, atol=1e-9)
    assert run("view", PUMA, "--no-browser")[0] == DONE
    assert shown[1] is None


@pytest.mark.plain_python
def test_warnings_of_commands_are_lines_without_source_code(tmp_path, run):
    file = tmp_path / "rod.urdf"
    mesh = '<visual><geometry><mesh filename="package://robot/meshes/rod.stl"/></geometry></visual>'
    file.write_text(MIMIC.format(link=LINK + mesh))
    code, out, err = run("view", file, "--duration", "0.02", "--out", tmp_path / "rod.html")
    assert code == DONE
    assert "rbchain: warning: model 'gripper': these meshes are not shown" in err
    assert "UserWarning" not in out + err
    assert ".py" not in err
