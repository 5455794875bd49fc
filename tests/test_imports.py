"""Imports: large packages are imported only when used, and missing ones are named."""

import copy
import pickle
import subprocess
import sys
from unittest.mock import create_autospec

import numpy as np
import pytest

import rbchain
from rbchain.errors import missing_package

#: The large packages that each use may import.
HEAVY = (
    *("numba", "scipy", "xarray", "matplotlib", "pandas", "zarr", "pydantic", "pint", "dask"),
    *("viser", "trimesh", "mujoco"),
)
#: The packages that only the extra `view` needs, and those that no core function needs.
OF_VIEW = ("viser", "trimesh", "collada", "imageio_ffmpeg")
OPTIONAL = (*OF_VIEW, "matplotlib", "xarray", "pandas", "zarr", "pydantic", "pint", "dask", "mujoco")
USES = {
    "import rbchain": (),
    "import rbchain as rb; rb.Model.serial_chain(2).inverse_dynamics([0, 0], [0, 0], [0, 0])": ("numba", "scipy"),
    "import rbchain as rb; rb.ModelBuilder(); rb.Signal.constant(1.0)": ("numba", "scipy"),
    "import rbchain.cli; rbchain.cli._parser()": (),
    "import rbchain.study.show.report": (),
}


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("use", USES)
def test_nothing_heavy_is_imported_before_it_is_used(use):
    ended = run(f"{use}\nimport sys\nprint([name for name in {HEAVY} if name in sys.modules])")
    assert ended.returncode == 0, ended.stderr
    assert set(eval(ended.stdout)) <= set(USES[use])


def test_a_model_is_built_without_dispatchers_of_numba_for_kernels():
    """There are more than a thousand kernels, and a process that loads machine code needs none of their dispatchers."""
    dispatchers = "rbchain.compiling.numba_internals.kernel_dispatcher.dispatchers"
    ended = run(
        "import os; os.environ['NUMBA_DISABLE_JIT'] = '0'\nimport rbchain; rbchain.Model.serial_chain(2)\n"
        f"print(len({dispatchers}) > 1000, sum('overloads' in vars(x) for x in {dispatchers}.values()))"
    )
    assert ended.stdout == "True 0\n", ended.stderr


def test_every_public_name_exists():
    assert len(rbchain.__all__) > 35
    for name in (*rbchain.__all__, "Study", "load_results", "study"):
        assert getattr(rbchain, name) is not None
    assert set(rbchain.__all__) <= set(dir(rbchain))


@pytest.mark.parametrize(
    ("missing", "use"),
    [
        (OPTIONAL, "model._repr_html_()"),
        (OPTIONAL, "model.simulate([[0.0]], [[0.1]], 0.1, method='rk4', step=0.1, save_at=2).message"),
        (OF_VIEW, "model.simulate([[0.0]], [[0.1]], 0.1, method='rk4', step=0.1, save_at=2).plot()"),
        (OF_VIEW, "import rbchain.study.show.pictures, rbchain.study.show.report, rbchain.study.show.datasets"),
        (OF_VIEW, "rb.Study, rb.load_results, rb.Normal"),
    ],
)
def test_a_use_needs_no_package_of_another_extra(missing, use):
    """A package that is None in sys.modules cannot be imported."""
    plain = "import os, sys; os.environ['NUMBA_DISABLE_JIT'] = '1'"
    code = f"{plain}; sys.modules.update(dict.fromkeys({missing}))\nimport rbchain as rb\n"
    ended = run(f"{code}model = rb.Model.serial_chain(1)\n{use}")
    assert ended.returncode == 0, ended.stderr


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
    assert last.endswith(missing_package(f" need the package {package}", extra))


def test_all_names_can_be_imported_without_the_extras():
    ended = run("import sys; sys.modules['pydantic'] = None\nfrom rbchain import *\nprint(Model.__name__)")
    assert ended.stdout == "Model\n", ended.stderr


@pytest.mark.parametrize("module", ["dh", "meshes", "native", "sdf", "urdf"])
def test_the_format_modules_need_no_explicit_import(module):
    ended = run(f"import rbchain as rb; print({module!r} in dir(rb.io), rb.io.{module}.__name__)")
    assert ended.stdout == f"True rbchain.io.{module}\n", ended.stderr


@pytest.mark.parametrize(
    ("owner", "misspelled", "meant"),
    [
        (rbchain, "loda", "load"),
        (rbchain, "Modle", "Model"),
        (rbchain, "stdy", "study"),
        (rbchain.io, "dhh", "dh"),
        (rbchain.study, "Normall", "Normal"),
        (rbchain.compiled, "jacobain", "jacobian"),
        (rbchain.Model.serial_chain(1), "forward_dynamic", "forward_dynamics"),
        (rbchain.Model.serial_chain(1), "bodynames", "body_names"),
        (rbchain.ModelBuilder(), "ad_body", "add_body"),
        (rbchain.Trajectory(*[np.zeros(1)] * 7), "sucess", "success"),
        (rbchain.Trajectory(*[np.zeros(1)] * 7), "evaluation", "evaluations"),
        (rbchain.Revolute(), "axes", "axis"),
        (rbchain.Screw((0, 0, 1), 0.1), "pich", "pitch"),
        (rbchain.Composite([rbchain.Revolute()]), "joint", "joints"),
        (rbchain.Planar(), "axes", "axis"),
        (rbchain.Inertia(1.0), "inertias", "inertia"),
        (rbchain.Pose(), "translations", "translation"),
        (rbchain.Immersion(), "buoyancy_centre", "buoyancy_center"),
        (rbchain.JointLimits(), "uper", "upper"),
        (rbchain.PassiveForces(), "dampping", "damping"),
        (rbchain.Visual("sphere", (1.0,)), "colour", "color"),
        (rbchain.Units(), "lenght", "length"),
        (rbchain.io.dh.DHLink(0, 0, 0), "aplha", "alpha"),
        (rbchain.PID("arm", 0.0, kp=1.0), "referense", "reference"),
        (rbchain.ComputedTorque("arm", 0.0, kp=1.0, kd=1.0), "joints", "joint"),
        (rbchain.PrescribedForce("arm", 0.0), "signals", "signal"),
        (rbchain.Event("height"), "functoin", "function"),
        (rbchain.Signal.constant(1.0), "break", "breaks"),
        (rbchain.Wrench("arm", force=(1, 0, 0)), "forces", "force"),
        (rbchain.Current((1, 0, 0)), "velocities", "velocity"),
    ],
)
def test_a_misspelled_attribute_suggests_the_right_name(owner, misspelled, meant):
    with pytest.raises(AttributeError, match=f"has no attribute {misspelled!r}; did you mean {meant}\\?$"):
        getattr(owner, misspelled)


@pytest.mark.parametrize(
    ("owner", "name", "message"),
    [
        (
            rbchain.Model.serial_chain(1),
            "masses",
            "cannot set masses, because models are immutable; did you mean mass?",
        ),
        (
            rbchain.Model.serial_chain(1),
            "mass",
            r"cannot set mass, because models are immutable; .* model.replace\(mass",
        ),
        (rbchain.Model.serial_chain(1), "simulate", "cannot set simulate, because models are immutable$"),
        (rbchain.ModelBuilder(), "gravty", "'ModelBuilder' object has no attribute 'gravty'; did you mean gravity?"),
        (rbchain.ModelBuilder(), "build", "cannot set build of a ModelBuilder"),
    ],
)
def test_attributes_that_a_class_does_not_have_cannot_be_set(owner, name, message):
    with pytest.raises(AttributeError, match=message.replace("?", r"\?")):
        setattr(owner, name, 1.0)


def test_attributes_of_a_builder_can_be_set():
    builder = rbchain.ModelBuilder()
    builder.gravity = np.zeros(3)
    builder.add_body("bob", joint=rbchain.Revolute(), inertia=rbchain.Inertia(1.0, cg=(1, 0, 0)))
    assert builder.build().gravity.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("owner", [rbchain, rbchain.io, rbchain.Model.serial_chain(1)])
@pytest.mark.parametrize("name", ["__wrapped__", "_loda", "zzzzzzzz"])
def test_private_and_dissimilar_names_get_no_suggestion(owner, name):
    with pytest.raises(AttributeError, match=f"has no attribute {name!r}$"):
        getattr(owner, name)
    assert not hasattr(owner, name)


def test_objects_that_suggest_attributes_can_be_copied_and_mocked():
    model, motion = rbchain.Model.serial_chain(2), rbchain.Trajectory(*[np.zeros(1)] * 7)
    for found in (pickle.loads(pickle.dumps(model)), copy.copy(model), copy.deepcopy(model)):
        assert found.body_names == model.body_names
    for found in (pickle.loads(pickle.dumps(motion)), copy.copy(motion), copy.deepcopy(motion)):
        assert found.t.tolist() == motion.t.tolist()
    drive = rbchain.PID("arm", rbchain.Signal.constant(0.5), kp=1.0)
    for found in (pickle.loads(pickle.dumps(drive)), copy.copy(drive), copy.deepcopy(drive)):
        assert (found.kp, found.reference.breaks.tolist()) == (1.0, drive.reference.breaks.tolist())
    mocked = create_autospec(rbchain.Model, instance=True)
    mocked.forward_dynamics([0.0], [0.0], [0.0])
    with pytest.raises(AttributeError):
        mocked.forward_dynamic  # noqa: B018


def test_an_attribute_error_inside_a_property_is_not_hidden():
    class Broken(rbchain.Model):
        @property
        def height(self):
            return self.mass.heihgt

    broken = Broken(rbchain.Model.serial_chain(1).description)
    with pytest.raises(AttributeError, match=r"ndarray.*heihgt"):
        broken.height  # noqa: B018


def test_an_object_before_its_initialization_raises_attribute_errors():
    with pytest.raises(AttributeError, match="has no attribute 'description'"):
        rbchain.Model.__new__(rbchain.Model).mass  # noqa: B018
