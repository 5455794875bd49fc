"""Generated functions are compiled, imported and run, and agree with the model that they were generated from."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import rbchain as rb
from tests.mechanisms import random_tree
from tests.test_water import KINDS, immersed_tree

pytestmark = pytest.mark.plain_python
MODELS = {
    "chain": lambda: rb.Model.serial_chain(6),
    "every_joint": lambda: random_tree(5, [-1, 0, 0], ("free", "screw", "spherical"), geared=("screw",)),
    "in_water": lambda: immersed_tree(KINDS["vehicle_with_arm"]),
}
FUNCTIONS = ["mass_matrix", "coriolis_matrix", "gravity_forces", "jacobian", "forward_dynamics"]
ARGUMENTS = {"coriolis_matrix": "q qd", "forward_dynamics": "q qd tau"}


def cases(model):
    """Yield each function's name, its arguments for a few states, the model's result, and the round-off allowed."""
    rng = np.random.default_rng(0)
    q, qd = model.random_state(rng, 3)
    of = {"q": q, "qd": qd, "tau": rng.normal(size=qd.shape)}
    for name in FUNCTIONS:
        arguments = [of[x] for x in ARGUMENTS.get(name, "q").split()]
        more = (model.body_names[-1],) if name == "jacobian" else ()
        expected = getattr(model, name)(*arguments, *more)
        growth = np.linalg.cond(model.mass_matrix(q)).max() if name == "forward_dynamics" else 1.0
        # the same operations in almost the same order: a few rounding errors per body of the largest terms
        yield name, arguments, expected, 64 * model.nv * growth * 2.2e-16 * max(1.0, np.abs(expected).max())


@pytest.mark.fast_cases("chain")
@pytest.mark.parametrize("name", MODELS)
def test_generated_numpy_agrees_with_the_model(name):
    model = MODELS[name]()
    module = {}
    exec(model.generate(FUNCTIONS, language="numpy"), module)
    for function, arguments, expected, allowed in cases(model):
        np.testing.assert_allclose(module[function](*arguments), expected, rtol=0, atol=allowed)
        np.testing.assert_allclose(module[function](*(x[1] for x in arguments)), expected[1], rtol=0, atol=allowed)


@pytest.mark.slow_cases("in_water")
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("name", ["chain", "in_water"])
def test_generated_c_agrees_with_the_model(name, tmp_path):
    model = MODELS[name]()
    model.generate(FUNCTIONS, path=tmp_path / "model.c")
    flags = ["-O0", "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, "-o", tmp_path / "model.so", tmp_path / "model.c", "-lm"], check=True)
    library = ctypes.CDLL(str(tmp_path / "model.so"))
    pointer = ctypes.POINTER(ctypes.c_double)
    for function, arguments, expected, allowed in cases(model):
        for chain in range(3):
            found = np.empty_like(expected[chain])
            given = [np.ascontiguousarray(x[chain]) for x in arguments]
            getattr(library, function)(*(x.ctypes.data_as(pointer) for x in (*given, found)))
            np.testing.assert_allclose(found, expected[chain], rtol=0, atol=allowed)


@pytest.mark.skipif(shutil.which("octave-cli") is None, reason="Octave is not installed")
@pytest.mark.parametrize("name", ["chain", "every_joint"])
def test_generated_matlab_agrees_with_the_model(name, tmp_path):
    model = MODELS[name]()
    model.generate(FUNCTIONS, language="matlab", path=tmp_path / "generated_model.m")
    for function, arguments, expected, allowed in cases(model):
        given = ", ".join(f"[{' '.join(map(repr, x[0].tolist()))}]" for x in arguments)
        script = f"model = generated_model(); disp(sprintf('%.17g ', model.{function}({given})'))"
        command = ["octave-cli", "--quiet", "--eval", script]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        found = np.array(done.stdout.split(), float).reshape(expected[0].shape)
        np.testing.assert_allclose(found, expected[0], rtol=0, atol=allowed)


@pytest.mark.slow
def test_constants_are_folded_and_nothing_is_computed_twice():
    """A planar mechanism needs few of the multiplications of a spatial one."""
    source = rb.Model.serial_chain(3).generate(["mass_matrix"])
    lines = [line.split(" = ")[1] for line in source.splitlines() if line.strip().startswith("const double t")]
    assert len(lines) == len(set(lines))
    assert len(lines) < 150
    assert source == rb.Model.serial_chain(3).generate(["mass_matrix"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"functions": ["inertia"]}, r"functions\[0\] is 'inertia'; expected one of 'mass_matrix'"),
        ({"functions": ["jacobian", "mass_matrixx"]}, r"functions\[1\] is .*; did you mean mass_matrix\?"),
        ({"functions": []}, r"functions is \[\]; expected a list"),
        ({"functions": "mass_matrix"}, "functions is 'mass_matrix'; expected a list"),
        ({"functions": ["jacobian"], "language": "rust"}, "language is 'rust'"),
    ],
)
def test_unsupported_functions_are_refused(arguments, sentence):
    with pytest.raises(rb.ModelError, match=sentence):
        rb.Model.serial_chain(2).generate(**arguments)
    with pytest.raises(rb.ModelError, match="samples differ"):
        rb.Model.serial_chain(2).vary(mass=np.ones((3, 2))).generate()
