"""`rbchain convert`: the same mechanism in another format."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import rbchain as rb
from rbchain import cli

from .mechanisms import random_tree

PUMA = Path(__file__).parents[1] / "examples" / "puma560.urdf"


@pytest.mark.parametrize("ending", ["toml", "urdf", "xml"])
def test_the_converted_mechanism_has_the_same_accelerations(tmp_path, capsys, ending):
    model, file, out = random_tree(5, [-1, 0, 0, 2]), tmp_path / "tree.toml", tmp_path / f"copy.{ending}"
    rb.save(model, file)
    assert cli.main(["convert", str(file), str(out)]) == 0
    assert f"saved {out}" in capsys.readouterr().out
    q, qd, tau = np.random.default_rng(1).normal(size=(3, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a URDF file has no gravity
        copy = rb.load(out).replace(gravity=model.gravity)
    expected = model.forward_dynamics(q, qd, tau)
    np.testing.assert_allclose(copy.forward_dynamics(q, qd, tau), expected, rtol=1e-9)


def test_the_root_link_may_float(tmp_path):
    out = tmp_path / "robot.toml"
    assert cli.main(["convert", str(PUMA), str(out), "--free-base"]) == 0
    assert rb.load(out).nv == 12


def test_a_file_that_exists_is_replaced_only_on_request(tmp_path, capsys):
    out = tmp_path / "robot.toml"
    out.write_text("mine")
    assert cli.main(["convert", str(PUMA), str(out)]) == 2
    assert f"{out} exists; choose another name, or add --overwrite" in capsys.readouterr().err
    assert out.read_text() == "mine"
    assert cli.main(["convert", str(PUMA), str(out), "--overwrite"]) == 0
    assert rb.load(out).n_bodies == 6


def test_a_format_that_is_not_written_is_named(tmp_path, capsys):
    assert cli.main(["convert", str(PUMA), str(tmp_path / "robot.sdf")]) == 2
    assert "expected" in capsys.readouterr().err
