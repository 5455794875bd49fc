"""A study that grows, and a study that is merged from parts, have the bits of a study that one run computes."""

import json
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

import rbchain as rb
from rbchain import cli
from rbchain.cli import output
from rbchain.study.plan.plan import Plan

pytestmark = pytest.mark.plain_python

ENERGY = rb.Measure("energy", "kinetic_energy")
CHUNK = 4


def study(samples, **keys):
    given = {
        "simulate": rb.Simulation(0.1, method="rk4", step=0.01, save_at=3),
        "vary": {"*.mass": rb.Dispersion(rb.Normal(1.0, 0.05), how="multiply"), "*.q": rb.Uniform(-0.3, 0.3)},
        "measures": [ENERGY],
    }
    return rb.Study(rb.Model.serial_chain(1), samples=samples, **given | keys)


def contents(results):
    """All numbers of results, and what was computed from them."""
    attributes = {
        name: results.attrs[name] for name in ("statistics", "linear_analysis", "effects", "samples", "study")
    }
    return {name: variable.values.tobytes() for name, variable in results.variables.items()}, attributes


@pytest.fixture
def computed(monkeypatch):
    """The samples that are computed from here on, without the motions for gradients."""
    numbers, compute = [], Plan.compute

    def noted(plan, first, last):
        if plan.table is None:
            numbers.extend(range(first, last))
        return compute(plan, first, last)

    monkeypatch.setattr(Plan, "compute", noted)
    return numbers


@pytest.mark.fast_cases("8-random")
@pytest.mark.parametrize("design", ["random", "sobol"])
@pytest.mark.parametrize("before", [1, 6, 8])
def test_a_grown_study_has_the_bits_of_a_new_one_and_computes_the_new_samples_only(tmp_path, computed, design, before):
    study(before, design=design).run(tmp_path / "grown", chunk=CHUNK)
    del computed[:]
    results = study(10, design=design).run(tmp_path / "grown")
    assert computed == list(range(before, 10))
    assert contents(results) == contents(study(10, design=design).run(tmp_path / "new", chunk=CHUNK))
    rb.load_results(tmp_path / "grown")


@pytest.mark.slow
def test_chunks_of_a_small_study_do_not_stay_small_when_it_grows(tmp_path):
    study(2).run(tmp_path)
    assert study(100).run(tmp_path).attrs["chunk"] == 4096


@pytest.mark.slow
def test_a_study_grows_again_and_keeps_the_results_of_each_size(tmp_path):
    for samples in (3, 5, 6, 11):
        grown = study(samples).run(tmp_path / "grown", chunk=CHUNK).load()
        new = study(samples).run(tmp_path / f"{samples}", chunk=CHUNK)
        assert contents(grown) == contents(new)


def test_studies_that_cannot_grow_say_why(tmp_path):
    study(8, design="latin_hypercube").run(tmp_path / "strata")
    with pytest.raises(rb.StudyError, match=r"'latin_hypercube' depend on their number.*'random' or 'sobol'"):
        study(9, design="latin_hypercube").run(tmp_path / "strata")
    study(8).run(tmp_path / "random")
    with pytest.raises(rb.StudyError, match=r"samples is 7, but .* contains this study with 8 samples"):
        study(7).run(tmp_path / "random")
    with pytest.raises(rb.StudyError, match="another study: samples was 8, is 9; seed was 0, is 1"):
        study(9, seed=1).run(tmp_path / "random")


@pytest.mark.slow
def test_results_of_earlier_versions_without_counts_of_samples_can_grow(tmp_path):
    study(6).run(tmp_path / "grown", chunk=CHUNK)
    from rbchain.study.store.checksums import read_verified, write_with_checksum

    for name in ("checksums/0.json", "checksums/1.json"):
        record = read_verified(tmp_path / "grown", name)
        del record["samples"]
        write_with_checksum(tmp_path / "grown", name, record)
    grown = study(10).run(tmp_path / "grown")
    assert contents(grown) == contents(study(10).run(tmp_path / "new", chunk=CHUNK))


@pytest.mark.fast_cases("3")
@pytest.mark.parametrize("moved", [0, 3, 8, 21])
def test_a_study_killed_while_it_grows_can_be_run_with_either_number_of_samples(tmp_path, monkeypatch, moved):
    """The description is replaced file by file."""

    class Killed(BaseException):
        pass

    study(6).run(tmp_path / "grown", chunk=CHUNK)
    replace, count = Path.replace, [0]

    def replace_or_die(path, target):
        if ".unfinished" in str(path):
            count[0] += 1
            if count[0] > moved:
                raise Killed
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", replace_or_die)
    with pytest.raises(Killed):
        study(10).run(tmp_path / "grown")
    monkeypatch.undo()
    for samples in (10,) if moved % 2 else (6, 10):
        shutil.copytree(tmp_path / "grown", tmp_path / f"to {samples}")
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*rbchain restores the damaged files", UserWarning)
            again = study(samples).run(tmp_path / f"to {samples}")
        assert contents(again) == contents(study(samples).run(tmp_path / f"new {samples}", chunk=CHUNK))


@pytest.mark.slow
def test_a_study_that_stopped_early_stays_stopped_when_it_may_grow(tmp_path, computed):
    stop = {"measure": "energy", "half_width": 1.0}
    given = {"stop_when": stop, "simulate": rb.Simulation(0.01, method="rk4", step=0.01, save_at=[0.01])}
    before = study(3000, **given).run(tmp_path / "grown", chunk=400).load()
    assert before.sizes["sample"] < 3000
    grown = study(4000, **given).run(tmp_path / "grown").load()
    assert grown.sizes["sample"] == before.sizes["sample"]
    np.testing.assert_array_equal(grown.energy.values, before.energy.values)
    assert grown.attrs["statistics"] == before.attrs["statistics"]


# --- parts ------------------------------------------------------------------------------------------------------------


@pytest.mark.fast_cases("1")
@pytest.mark.parametrize("parts", [1, 3, 12])
def test_merged_parts_have_the_bits_of_one_run(tmp_path, computed, parts):
    given, folders = study(10), [tmp_path / f"part{k}" for k in range(1, parts + 1)]
    sizes = [given.run(folders[k], part=(k + 1, parts), chunk=CHUNK).sizes["sample"] for k in range(parts)]
    assert sum(sizes) == 10
    assert sorted(computed) == list(range(10))
    del computed[:]
    merged = given.merge(tmp_path / "merged", folders[::-1])
    assert not computed
    chunk = int(merged.attrs["chunk"])
    assert contents(merged) == contents(given.run(tmp_path / "whole", chunk=chunk))


def test_a_part_contains_its_samples(tmp_path):
    given = study(10)
    whole = given.run()
    part = given.run(tmp_path, part=(2, 3), chunk=CHUNK)
    np.testing.assert_array_equal(part.energy.values, whole.energy.values[4:8])
    assert "statistics" not in part.attrs
    assert given.run(tmp_path).sizes["sample"] == 10  # the folder can be completed without a merge


def test_missing_parts_are_named_and_can_be_added(tmp_path):
    given = study(10)
    for k in (1, 3):
        given.run(tmp_path / f"{k}", part=(k, 3), chunk=CHUNK)
    with pytest.raises(rb.StudyError, match=r"4 of 10 samples are in none of the folders: samples 4 to 7\."):
        given.merge(tmp_path / "merged", [tmp_path / "1", tmp_path / "3"])
    given.run(tmp_path / "2", part=(2, 3), chunk=CHUNK)
    merged = given.merge(tmp_path / "merged", [tmp_path / "2"])
    np.testing.assert_array_equal(merged.energy.values, given.run().energy.values)


@pytest.mark.slow
def test_parts_that_do_not_fit_are_refused(tmp_path):
    study(10).run(tmp_path / "one", part=(1, 3), chunk=CHUNK)
    study(10, seed=1).run(tmp_path / "other seed", part=(2, 3), chunk=CHUNK)
    study(12).run(tmp_path / "more", part=(2, 3), chunk=CHUNK)
    study(10).run(tmp_path / "other chunks", part=(2, 3), chunk=2)
    for folder, reason in (
        ("other seed", "seed was 1, is 0"),
        ("more", "contains this study with 12 samples"),
        ("other chunks", "has chunks of 2 samples, and .* has chunks of 4"),
        ("nothing", "contains no results of a study"),
    ):
        with pytest.raises(rb.StudyError, match=reason):
            study(10).merge(tmp_path / "merged", [tmp_path / "one", tmp_path / folder])
    with pytest.raises(rb.StudyError, match="part of this study with 10 samples; expected 12"):
        study(12).merge(tmp_path / "merged12", [tmp_path / "one"])
    with pytest.raises(rb.StudyError, match="no folders to merge"):
        study(10).merge(tmp_path / "empty", [])
    for part, reason in (((0, 3), "part.0. is 0"), ((4, 3), "from 1 to 3"), (3, "part is 3; expected"), ("13", "13")):
        with pytest.raises(rb.StudyError, match=reason):
            study(10).run(tmp_path / "wrong", part=part)
    with pytest.raises(rb.StudyError, match="out is missing"):
        study(10).run(part=(1, 3))
    with pytest.raises(rb.StudyError, match="stop_when may end the study early"):
        study(10, stop_when={"measure": "energy", "half_width": 1e-3}).run(tmp_path / "stop", part=(1, 3))
    with pytest.raises(rb.StudyError, match="no argument 'part'"):
        study(10).evaluate(np.zeros((1, 2)), part=(1, 3))


def test_the_command_line_runs_parts_and_merges_them(tmp_path, capsys):
    (tmp_path / "study.toml").write_text(
        """
        samples = 10
        [model]
        serial_chain = { n = 1 }
        [vary."*.q"]
        type = "uniform"
        low = -0.3
        high = 0.3
        [simulate]
        duration = 0.1
        method = "rk4"
        step = 0.01
        save_at = 3
        [[measures]]
        name = "energy"
        quantity = "kinetic_energy"
        """
    )
    file = str(tmp_path / "study.toml")
    for k in (1, 2):
        assert cli.main(["study", "run", file, "--part", f"{k}/2", "--out", str(tmp_path / f"{k}")]) == output.EXIT_OK
        assert f"part {k} of 2: 5 samples, 0 failed" in capsys.readouterr().out
    assert cli.main(["study", "run", file, "--part", "1/2"]) == output.EXIT_REFUSED
    assert "--part needs --out" in capsys.readouterr().err
    folders = [str(tmp_path / name) for name in ("all", "1", "2")]
    assert cli.main(["study", "merge", *folders]) == output.EXIT_OK
    assert "10 samples, 0 failed" in capsys.readouterr().out
    assert json.loads(rb.load_results(tmp_path / "all").attrs["statistics"])["samples"] == 10
    with pytest.raises(SystemExit):
        cli.main(["study", "run", file, "--part", "3", "--out", str(tmp_path / "3")])
    assert "'3' is not a part; expected K/N" in capsys.readouterr().err
