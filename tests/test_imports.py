"""What is imported when: nothing heavy until it is used, and what is missing is named."""

import subprocess
import sys

import pytest

import rbchain

#: What each use may bring with it; nothing else of the heavy packages.
HEAVY = ("numba", "scipy", "xarray", "matplotlib", "pandas", "zarr", "pydantic", "dask", "viser", "trimesh", "mujoco")
USES = {
    "import rbchain": (),
    "import rbchain as rb; rb.Model.serial_chain(2).inverse_dynamics([0, 0], [0, 0], [0, 0])": ("numba", "scipy"),
    "import rbchain as rb; rb.ModelBuilder(); rb.Signal.constant(1.0)": ("numba", "scipy"),
}


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("use", USES)
def test_nothing_heavy_is_imported_before_it_is_used(use):
    ended = run(f"{use}\nimport sys\nprint([name for name in {HEAVY} if name in sys.modules])")
    assert ended.returncode == 0, ended.stderr
    assert set(eval(ended.stdout)) <= set(USES[use])


def test_every_public_name_is_there():
    assert len(rbchain.__all__) > 35
    for name in (*rbchain.__all__, "Study", "run_study", "study"):
        assert getattr(rbchain, name) is not None
    assert set(rbchain.__all__) <= set(dir(rbchain))


@pytest.mark.parametrize(
    ("package", "extra", "use"),
    [
        ("pydantic", "study", "rb.Study"),
        ("viser", "view", "rb.Model.serial_chain(1).view()"),
        ("matplotlib", "view", "rb.Model.serial_chain(1).picture()"),
        ("trimesh", "view", "rb.Model.serial_chain(1).view()"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(package, extra, use):
    ended = run(f"import sys; sys.modules[{package!r}] = None\nimport rbchain as rb\n{use}")
    assert ended.returncode == 1
    last = ended.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: ")
    assert last.endswith(f" need the package {package}, which is missing: pip install 'rbchain[{extra}]'")


def test_all_names_can_be_had_without_the_extras():
    ended = run("import sys; sys.modules['pydantic'] = None\nfrom rbchain import *\nprint(Model.__name__)")
    assert ended.stdout == "Model\n", ended.stderr
