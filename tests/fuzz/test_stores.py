"""Damaged results of a study: every damaged or missing file is named."""

import shutil

import pytest
from hypothesis import given, strategies as st

import rbchain as rb

from .cases import cases, ended
from .mutations import damaged

pytestmark = [pytest.mark.plain_python, pytest.mark.filterwarnings("error::RuntimeWarning")]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A folder of finished results, and its files by their names."""
    folder = tmp_path_factory.mktemp("results")
    study = rb.Study(
        model=rb.Model.serial_chain(1),
        samples=6,
        vary={"*.q": rb.Uniform(-0.3, 0.3)},
        simulate={"duration": 0.02, "method": "rk4", "step": 0.01, "save_at": 2},
    )
    study.run(folder, chunk=4)
    places = (folder / "results.zarr", folder / "checksums")
    return folder, sorted(p for place in places for p in place.rglob("*") if p.is_file())


@cases(percent=2, ends=("damaged",))
@given(data=st.data())
def test_every_damaged_file_is_named(results, data):
    folder, files = results
    file = data.draw(st.sampled_from(files), label="file")
    original = file.read_bytes()
    content = data.draw(damaged(original), label="content")
    try:
        file.write_bytes(content)
        if content == original:
            rb.load_results(folder)
            ended("unchanged")
            return
        with pytest.raises(rb.StudyError) as raised:
            rb.load_results(folder)
        assert file.name in str(raised.value)
        assert "rbchain study run" in str(raised.value)
        ended("damaged")
    finally:
        file.write_bytes(original)


@cases(percent=1)
@given(data=st.data())
def test_every_missing_file_is_named(results, data):
    folder, files = results
    file = data.draw(st.sampled_from(files), label="file")
    away = folder / "away"
    shutil.move(file, away)
    try:
        with pytest.raises(rb.StudyError) as raised:
            rb.load_results(folder)
        assert file.name in str(raised.value)
    finally:
        shutil.move(away, file)
