"""Damaged results: every changed, truncated, missing or swapped file is named, and the next run repairs it."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import xarray

import rbchain as rb
from rbchain import cli
from rbchain.cli import output
from rbchain.study.plan.plan import Plan

FLIPS_PER_FILE = 1
HEIGHT = {"name": "height", "quantity": "coordinate", "frame": "link2", "axis": "y"}
STUDY = {
    "samples": 12,
    "vary": {"*.mass": rb.Dispersion(rb.Normal(1.0, 0.05), how="multiply"), "*.q": rb.Uniform(-0.3, 0.3)},
    "simulate": {"duration": 0.1, "method": "rk4", "step": 0.01, "save_at": 3},
    "outputs": {"motion": True},
    "measures": [HEIGHT],
}
CHUNK = 4


def study(**keys):
    return rb.Study(**{"model": rb.Model.serial_chain(2)} | STUDY | keys)


def files_of(folder):
    """Every file of the results by its name."""
    places = (folder / "results.zarr", folder / "checksums")
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for place in places for p in place.rglob("*") if p.is_file()
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder of finished results, and what is in it."""
    folder = tmp_path_factory.mktemp("whole")
    results = study().run(folder, chunk=CHUNK).load()
    return folder, files_of(folder), results


@pytest.fixture
def folder(whole, tmp_path):
    """A copy of the finished results, to be damaged."""
    shutil.copytree(whole[0], tmp_path / "out")
    return tmp_path / "out"


@pytest.fixture
def computed(monkeypatch):
    """The first samples of the chunks that are computed from here on, without the motions for gradients."""
    spans, compute = [], Plan.compute

    def noted(plan, first, last):
        if plan.table is None:
            spans.append(first)
        return compute(plan, first, last)

    monkeypatch.setattr(Plan, "compute", noted)
    return spans


def chunk_of(name):
    """The first sample whose results a file holds, in a list; [] for a file of all samples."""
    parts = Path(name).parts
    if parts[0] == "checksums":
        return [CHUNK * int(Path(name).stem)]
    return [CHUNK * int(parts[3])] if parts[2:3] == ("c",) and parts[1] not in LABELS else []


LABELS = ("parameter", "parameter_units", "position", "position_units", "velocity", "velocity_units", "time")


def check_named(folder, name, capsys):
    """Check that `status` and `report` name the file, say how to repair the results, and exit with 2."""
    for verb in ("status", "report"):
        assert cli.main(["study", verb, str(folder)]) == output.EXIT_REFUSED
        said = capsys.readouterr().err
        assert said.startswith(f"rbchain: error: {folder / name}: ")
        assert "To repair the results, run the study into this folder again" in said
        assert (f"recomputes {CHUNK} samples" if chunk_of(name) else "keeps all samples") in said
        assert "Traceback" not in said


def check_repaired(folder, name, whole, computed, lost=None):
    """Check that a run names the file too, computes only its samples, and restores the results."""
    del computed[:]
    with pytest.warns(UserWarning, match=f"{name}: .* rbchain restores the damaged files"):
        results = study().run(folder)
    assert computed == (chunk_of(name) if lost is None else lost)
    assert files_of(folder) == whole[1]
    assert results.identical(whole[2])


@pytest.mark.slow
def test_a_flipped_bit_in_any_file_is_reported_and_repaired_or_harmless(folder, whole, computed, capsys):
    rng, names = np.random.default_rng(0), sorted(whole[1])
    harmless = 0
    for name in names:
        size = len(whole[1][name])
        for bit in rng.choice(8 * size, min(8 * size, FLIPS_PER_FILE), replace=False):
            spoilt = bytearray(whole[1][name])
            spoilt[bit // 8] ^= 1 << (bit % 8)
            (folder / name).write_bytes(spoilt)
            if name.endswith(".json") and same_json(spoilt, whole[1][name]):  # for example, space between words
                harmless += 1
                assert rb.load_results(folder).identical(whole[2])
                (folder / name).write_bytes(whole[1][name])
                continue
            check_named(folder, name, capsys)
            if not name.endswith(".json"):  # chunks contain checksums, which xarray checks
                with pytest.raises(ValueError, match="checksum"):
                    xarray.open_zarr(folder / "results.zarr", consolidated=False).load()
            check_repaired(folder, name, whole, computed)
    assert len(names) * FLIPS_PER_FILE - harmless > 45


def same_json(first, second):
    """Whether both contain the same values."""
    try:
        return json.loads(first) == json.loads(second)
    except ValueError:
        return False


def test_xarray_reads_fill_values_for_a_missing_chunk(folder, whole):
    for name in [name for name in whole[1] if name.startswith("results.zarr") and chunk_of(name) == [4]]:
        (folder / name).unlink()
    found = xarray.open_zarr(folder / "results.zarr", consolidated=False)
    for variable in whole[2]:
        lost = found[variable][4:8].values
        assert np.isnan(lost).all() if lost.dtype.kind == "f" else (lost == -1).all()


@pytest.mark.slow
def test_truncated_and_missing_files_are_named_and_repaired(folder, whole, computed, capsys):
    rng = np.random.default_rng(1)
    for i, (name, content) in enumerate(sorted(whole[1].items())):
        if i % 2 == 0:
            (folder / name).unlink()
        else:
            (folder / name).write_bytes(content[: rng.choice(len(content))])
        check_named(folder, name, capsys)
        check_repaired(folder, name, whole, computed)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("results.zarr/height/c/0", "results.zarr/height/c/2"),
        ("results.zarr/q_final/c/1/0", "results.zarr/qd_final/c/1/0"),
        ("results.zarr/position/c/0", "results.zarr/parameter/c/0"),
        ("results.zarr/q_final/zarr.json", "results.zarr/qd_final/zarr.json"),
        ("checksums/0.json", "checksums/1.json"),
    ],
)
def test_swapped_files_are_named_and_repaired(first, second, folder, whole, computed, capsys):
    (folder / first).write_bytes(whole[1][second])
    (folder / second).write_bytes(whole[1][first])
    assert cli.main(["study", "status", str(folder)]) == output.EXIT_REFUSED
    said = capsys.readouterr().err
    assert f"{folder / first}: " in said
    assert f"{folder / second}: " in said
    check_repaired(folder, first, whole, computed, lost=sorted({*chunk_of(first), *chunk_of(second)}))


@pytest.mark.parametrize("place", ["results.zarr/height", "results.zarr/position", "checksums"])
def test_a_missing_folder_is_repaired(place, folder, whole, computed):
    shutil.rmtree(folder / place)
    with pytest.raises(rb.StudyError, match="the file is missing"):
        rb.load_results(folder)
    name = "checksums/0.json" if place == "checksums" else f"{place}/zarr.json"
    check_repaired(folder, name, whole, computed, lost=[] if place.endswith("position") else [0, 4, 8])


def test_a_chunk_of_another_study_is_not_accepted(folder, whole, computed, tmp_path):
    study(seed=1).run(tmp_path / "other", chunk=CHUNK)
    other = files_of(tmp_path / "other")
    for name in other:
        if chunk_of(name) == [4]:
            (folder / name).write_bytes(other[name])
    check_repaired(folder, "checksums/1.json", whole, computed)


def test_results_without_a_description_are_refused(folder, whole):
    """Even without `zarr.json`, the arrays record the study that they belong to."""
    (folder / "results.zarr" / "zarr.json").unlink()
    with pytest.raises(
        rb.StudyError, match=r"zarr.json is damaged, and no other file shows that the results belong to"
    ):
        study(seed=1).run(folder)
    for path in (folder / "results.zarr").rglob("zarr.json"):
        path.unlink()
    with pytest.raises(rb.StudyError, match=r"Choose another folder, or delete this one"):
        study().run(folder)


def test_results_without_checksums_are_refused(folder, capsys):
    """An earlier version wrote no checksums."""
    path = folder / "results.zarr" / "zarr.json"
    document = json.loads(path.read_text())
    document["attributes"] = {"format": 1} | {k: document["attributes"][k] for k in ("chunk", "study", "samples")}
    path.write_text(json.dumps(document))
    for arguments in (["status", str(folder)], ["report", str(folder)]):
        assert cli.main(["study", *arguments]) == output.EXIT_REFUSED
        assert "an earlier version of rbchain wrote these results without checksums" in capsys.readouterr().err
    with pytest.raises(rb.StudyError, match="run the study again into another folder"):
        study().run(folder)


class Enough(Exception):
    """Raised to leave a study unfinished."""


def run_some(given, folder, chunks, **settings):
    """Run a study until some chunks are done."""
    done = []

    def watch(count, statistics):
        done.append(count)
        if len(done) > chunks:
            raise Enough

    with pytest.raises(Enough):
        given.run(folder, progress=watch, **settings)


def test_damage_in_an_unfinished_study_is_named_and_repaired(whole, computed, tmp_path, capsys):
    run_some(study(), tmp_path, 2, chunk=CHUNK)
    assert rb.load_results(tmp_path).status.values.max() == 0
    path = tmp_path / "results.zarr" / "height" / "c" / "0"
    path.write_bytes(path.read_bytes()[:-2])
    check_named(tmp_path, "results.zarr/height/c/0", capsys)
    check_repaired(tmp_path, "results.zarr/height/c/0", whole, computed, lost=[0, 8])


def test_statistics_after_a_repair_are_those_of_all_samples(tmp_path):
    """Samples are added in blocks of 1024, which do not coincide with chunks of 400."""
    given = study(samples=3000, outputs={"motion": False})
    expected = given.run(tmp_path, chunk=400).load()
    before = files_of(tmp_path)
    (tmp_path / "results.zarr" / "height" / "c" / "3").unlink()
    (tmp_path / "checksums" / "6.json").write_text("{")
    with pytest.warns(UserWarning, match="recomputes 800 samples"):
        results = given.run(tmp_path)
    assert results.identical(expected)
    assert files_of(tmp_path) == before


def test_a_repaired_study_stops_early_at_the_same_sample(tmp_path, computed):
    stop = {"measure": "height", "half_width": 0.002}
    given = study(samples=20_000, outputs={"motion": False}, stop_when=stop)
    expected = given.run(tmp_path, chunk=400).load()
    assert 1024 <= expected.sizes["sample"] < 20_000
    before = files_of(tmp_path)
    for name in ("results.zarr/height/c/1", "results.zarr/height/zarr.json", "results.zarr/zarr.json"):
        (tmp_path / name).write_bytes(before[name][:-1])
        with pytest.warns(UserWarning, match=name):
            results = given.run(tmp_path)
        assert results.identical(expected)
        assert files_of(tmp_path) == before


def test_a_run_killed_while_it_finishes_can_be_resumed(tmp_path, computed):
    """Some arrays have the planned number of samples, others the number at which the study stopped."""
    stop = {"measure": "height", "half_width": 0.002}
    given = study(samples=20_000, outputs={"motion": False}, stop_when=stop)
    given.run(tmp_path / "ended", chunk=400)
    run_some(given, tmp_path / "begun", 2, chunk=400)
    name = "results.zarr/q_final/zarr.json"
    shutil.copy(tmp_path / "begun" / name, tmp_path / "ended" / name)
    before = files_of(tmp_path / "ended")
    with pytest.raises(rb.StudyError, match="different numbers of samples, because a run was killed while it ended"):
        rb.load_results(tmp_path / "ended")
    del computed[:]
    with pytest.warns(UserWarning, match="different numbers of samples"):
        given.run(tmp_path / "ended")
    assert not computed
    assert len(files_of(tmp_path / "ended")) == len(before)
    rb.load_results(tmp_path / "ended")
