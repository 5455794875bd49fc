"""A write that fails, as on a full disk, leaves the old file and no part of a new one."""

import contextlib
import resource

import numpy as np
import pytest

import rbchain as rb
from rbchain.common.whole_files import whole_file

pytestmark = [pytest.mark.plain_python, pytest.mark.filterwarnings("ignore")]
LIMIT = 64  # bytes


@contextlib.contextmanager
def full_disk():
    """Let every write to a file fail after LIMIT bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def motion():
    return rb.Model.serial_chain(2).simulate(*np.zeros((2, 3, 2)), 0.1, method="rk4", step=0.1, save_at=2)


WRITERS = {
    "motion.npz": lambda path: motion().save(path),
    "motion.parquet": lambda path: motion().to_parquet(path),
    "model.toml": lambda path: rb.save(rb.Model.serial_chain(2), path),
    "model.urdf": lambda path: rb.save(rb.Model.serial_chain(2), path),
    "model.xml": lambda path: rb.save(rb.Model.serial_chain(2), path),
    "model.c": lambda path: rb.Model.serial_chain(1).generate(["gravity_forces"], path=path),
    "motion.html": lambda path: motion().film(path),
    "motion.gif": lambda path: motion().film(path),
}


@pytest.mark.slow_cases("model.c", "motion.gif", "motion.html-True")
@pytest.mark.parametrize("existed", [True, False])
@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_the_old_file_and_no_part_of_a_new_one(name, existed, tmp_path):
    path = tmp_path / name
    if existed:
        path.write_text("old")
    with full_disk(), pytest.raises(OSError):
        WRITERS[name](path)
    assert [file.name for file in tmp_path.iterdir()] == [name] * existed
    if existed:
        assert path.read_text() == "old"
    WRITERS[name](path)
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert path.stat().st_size > LIMIT


def test_links_are_followed_and_permissions_are_kept(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    with whole_file(link) as partial:
        partial.write_text("new")
    assert (target.read_text(), link.is_symlink(), target.stat().st_mode & 0o777) == ("new", True, 0o600)


def test_an_error_of_the_system_names_the_file(tmp_path):
    with pytest.raises(OSError, match="full") as found, whole_file(tmp_path / "file") as partial:
        partial.write_text("part")
        raise OSError("full")
    assert found.value.__notes__ == [
        f"{tmp_path / 'file'} was not written. A file of this name that existed before has not changed."
    ]
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["model.toml", "model.urdf", "motion.npz"])
def test_a_missing_folder_is_named(name, tmp_path):
    saved = motion()
    folder = tmp_path / "nowhere"
    message = f"{name} cannot be written, because the folder '{folder}' does not exist; create it"
    with pytest.raises(FileNotFoundError, match=message):
        saved.save(folder / name) if name == "motion.npz" else rb.save(saved.model, folder / name)
    assert not folder.exists()
