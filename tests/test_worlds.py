"""Units, materials and meshes of a ModelBuilder, compared with closed forms and exact factors."""

import subprocess
import sys

import numpy as np
import pint
import pytest
import trimesh

import rbchain as rb
from rbchain.errors import missing_package
from rbchain.io.meshes import inertia_of_mesh
from rbchain.model.materials import ALIASES, DENSITIES, density_of
from rbchain.model.units import FACTORS as KNOWN_FACTORS, SI, SYSTEMS, Units

INCH, POUND = 0.0254, 0.45359237  # exact, as is the pound-force with 9.80665 m/s^2
POUND_FORCE = POUND * 9.80665


def assert_same(found, expected, tolerance=1e-13):
    """Compare mass properties to a relative tolerance."""
    assert found.mass == pytest.approx(expected.mass, rel=tolerance)
    np.testing.assert_allclose(found.cg, expected.cg, rtol=0, atol=tolerance * max(1.0, np.abs(expected.cg).max()))
    np.testing.assert_allclose(found.inertia, expected.inertia, rtol=0, atol=tolerance * np.abs(expected.inertia).max())


# Materials


@pytest.mark.parametrize(
    "name, density",
    [("steel", 7850), ("Aluminum", 2700), ("ALUMINIUM", 2700), ("water", 1000), ("cast-iron", 7200), (" pvc ", 1400)],
)
def test_material_names_are_matched_in_any_spelling(name, density):
    assert density_of(name) == density


def test_every_material_and_alias_has_a_density():
    assert all(density_of(name) == density for name, density in DENSITIES.items())
    assert all(density_of(alias.upper()) == DENSITIES[name] for alias, name in ALIASES.items())
    assert all(100 < density < 23000 for density in DENSITIES.values())
    assert density_of(512) == density_of(np.float64(512)) == 512.0


@pytest.mark.parametrize("wrong", ["unobtainium", "", 0, -1.0, np.nan, np.inf, None, [7850], True])
def test_an_unknown_material_is_refused_with_the_known_names(wrong):
    with pytest.raises(rb.ModelError, match=r"(material|density) (is|has) .*; expected .*ABS, .*steel, .*water"):
        density_of(wrong)


# Units

# The SI value of 1 in each system, by definition.
FACTORS = {
    "SI": dict.fromkeys(SI, 1.0),
    "mm-kg-s": {"length": 1e-3, "inertia": 1e-6, "density": 1e9, "force": 1e-3, "moment": 1e-6, "gravity": 1e-3}
    | {"velocity": 1e-3, "volume": 1e-9},
    "cm-kg-s": {"length": 1e-2, "inertia": 1e-4, "density": 1e6, "force": 1e-2, "moment": 1e-4, "gravity": 1e-2}
    | {"velocity": 1e-2, "volume": 1e-6},
    "cm-g-s": {
        "length": 1e-2,
        "mass": 1e-3,
        "inertia": 1e-7,
        "density": 1e3,
        "force": 1e-5,
        "moment": 1e-7,
        "gravity": 1e-2,
        "velocity": 1e-2,
        "volume": 1e-2**3,
    },
    "inch-pound": {
        "length": INCH,
        "mass": POUND,
        "inertia": POUND * INCH**2,
        "density": POUND / INCH**3,
        "force": POUND_FORCE,
        "moment": POUND_FORCE * INCH,
        "gravity": INCH,
        "velocity": INCH,
        "volume": INCH**3,
    },
}


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("dimension", SI)
def test_numbers_are_converted_to_si(system, dimension):
    units, factor = Units(system), FACTORS[system].get(dimension, 1.0)
    assert units.quantity(3.7, dimension) == getattr(units, dimension)(3.7) == pytest.approx(3.7 * factor, rel=1e-14)
    np.testing.assert_allclose(units.quantity([1, -2, 0.5], dimension), np.array([1, -2, 0.5]) * factor, rtol=1e-14)
    assert units.quantity(f"2.5 {units.units[dimension]}", dimension) == pytest.approx(2.5 * factor, rel=1e-14)


def test_si_values_are_kept_unchanged():
    values = np.random.default_rng(0).normal(size=100)
    assert all((Units().quantity(values, dimension) == values).all() for dimension in SI)


def test_angles_are_in_degrees_on_request():
    units = Units("mm-kg-s", degrees=True)
    assert units.angle(180) == pytest.approx(np.pi, rel=1e-15)
    assert units.angle("0.5 turn") == units.angle("180°") == pytest.approx(np.pi, rel=1e-15)
    assert (units.angle("1 rad"), Units("mm-kg-s").angle(1)) == (1.0, 1.0)
    assert repr(units) == "Units('mm-kg-s', degrees=True)"


@pytest.mark.parametrize("value", ["30 cm", "0.3m", "3e2 mm", " +.3  meter ", "0.3 kg m / kg", "0.3 m**2/m"])
def test_strings_may_contain_units(value):
    assert Units("inch-pound").length(value) == pytest.approx(0.3, rel=1e-14)


def test_factors_of_common_units_are_those_of_pint():
    registry = pint.UnitRegistry()
    for dimension, si in SI.items():
        for unit, factor in {si: 1.0, **KNOWN_FACTORS.get(dimension, {})}.items():
            for number in (1.0, 4.0, 0.3, -1e-7 / 3):
                assert number * factor == registry.Quantity(number, unit).to(si).magnitude, unit
                assert Units().quantity(f"{number!r} {unit}", dimension) == number * factor, unit


def test_quantities_of_any_pint_registry_are_converted():
    foreign = pint.UnitRegistry()
    units = Units("mm-kg-s")
    assert units.mass(foreign.Quantity(2.0, "lb")) == pytest.approx(2 * POUND, rel=1e-14)
    np.testing.assert_allclose(units.length(foreign.Quantity([1.0, 2.0], "inch")), [INCH, 2 * INCH], rtol=1e-14)
    np.testing.assert_allclose(units.length(["1 m", 2, foreign.Quantity(3, "cm")]), [1.0, 0.002, 0.03], rtol=1e-14)
    np.testing.assert_allclose(units.inertia([[1, 0], [0, 1]]), np.eye(2) * 1e-6, rtol=1e-14)
    assert units.gravity("9.81 N/kg") == pytest.approx(9.81, rel=1e-14)


@pytest.mark.parametrize(
    "value, dimension, sentence",
    [
        ("30 cm", "mass", "mass is '30 cm'; expected a mass such as '1 kg'"),
        ("5 kg", "force", "force is '5 kg'; expected a force such as '1 N'"),
        ("3 lbf", "inertia", "inertia is '3 lbf'; expected an inertia such as '1 kg m.2'"),
        ("30", "length", "length is '30'; expected a length such as '1 m'"),
        ("30", "angle", "angle is '30'; expected an angle such as '1 rad'"),
        ("30 %", "angle", "angle is '30 %'"),
        ("3 m/m", "angle", "angle is '3 m/m'"),
        ("3 foos", "length", "length is '3 foos'; expected a length such as '1 m'"),
        ("cm", "length", "length is 'cm'"),
        ("", "length", "length is ''"),
        ("1 + 2 m", "length", "length is '1 . 2 m'"),
        ("1 m^9^9^9^9", "length", "length is '1 m"),
        ("1 m)", "length", "length is '1 m.'"),
        ("1e999 m", "length", "length is inf; expected finite numbers"),
        ("20 degC", "length", "length is '20 degC'"),
        (["30 cm", "2 kg"], "length", "length is '2 kg'"),
        (pint.Quantity(3.0, "s"), "mass", "mass is '3.0 second'; expected a mass such as '1 kg'"),
        (pint.Quantity(3.0, ""), "angle", "angle is '3.0 dimensionless'"),
        (None, "mass", "mass is None; expected real numbers"),
        (np.inf, "mass", "mass is inf; expected finite numbers"),
        (object, "mass", "mass is .*; expected real numbers"),
        (1.0, "color", "dimension is 'color'; expected one of length, mass"),
    ],
)
def test_values_of_the_wrong_dimension_are_refused_by_name(value, dimension, sentence):
    with pytest.raises(rb.ModelError, match=sentence):
        Units().quantity(value, dimension)


def test_an_unknown_system_of_units_is_refused():
    with pytest.raises(rb.ModelError, match="units is 'mks'; expected one of 'SI', 'mm-kg-s'"):
        Units("mks")
    with pytest.raises(rb.ModelError, match="degrees is 'no'; expected True or False"):
        Units("SI", degrees="no")


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("shape", ["box", "cylinder", "sphere"])
def test_shapes_in_other_units_give_the_same_inertias(system, shape):
    of = FACTORS["SI"] | FACTORS[system]
    length, density, moved = np.array([0.3, 0.02, 0.02111]), density_of("steel"), np.array([0.1, -0.2, 0.05])

    def made(lengths, density, cg):
        if shape == "box":
            return rb.Inertia.box(lengths, density=density, cg=cg)
        if shape == "cylinder":
            return rb.Inertia.cylinder(lengths[1], lengths[0], density=density, cg=cg)
        return rb.Inertia.sphere(lengths[0], density=density, cg=cg)

    units = Units(system)
    there = length / of["length"], density / of["density"], moved / of["length"]
    here = units.length(there[0]), units.density(there[1]), units.length(there[2])
    assert_same(made(*here), made(length, density, moved))
    # and mass properties computed there and converted
    theirs = made(*there)  # mass as density times length cubed
    mass = theirs.mass * of["density"] * of["length"] ** 3
    expected = made(length, density, moved)
    assert mass == pytest.approx(expected.mass, rel=1e-13)
    tensor = units.inertia(expected.inertia / of["inertia"])
    assert_same(rb.Inertia(units.mass(mass / of["mass"]), cg=units.length(theirs.cg), inertia=tensor), expected)


def test_a_model_in_millimeters_equals_the_model_in_meters():
    def crane(units, reach, bob, weight):
        builder = rb.ModelBuilder(gravity=weight)
        boom = rb.Inertia.box(units.length([reach, 2 * bob, 2 * bob]), density=density_of("aluminium"))
        builder.add_body("boom", joint=rb.Revolute((0, 1, 0)), inertia=boom)
        bob = rb.Inertia.sphere(units.length(bob), mass=units.mass("2 kg"))
        at = rb.Pose((units.length(reach), 0, 0))
        builder.add_body("bob", parent="boom", joint=rb.Revolute(), placement=at, inertia=bob)
        return builder.build()

    meters = crane(Units(), 0.4, 0.05, (0, 0, -9.81))
    millimeters = crane(mm := Units("mm-kg-s"), 400, 50, mm.gravity([0, 0, -9810]))
    for name in ("mass", "cg", "inertia", "gravity", "placement_translation"):
        found, expected = getattr(millimeters, name), getattr(meters, name)
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-16, err_msg=name)


# Meshes


def tetrahedron():
    """The corner that x + y + z = 1 cuts off: mass 1/6, cg at a quarter; closed form of the tensor of a unit mass."""
    mesh = trimesh.Trimesh(np.vstack([np.zeros(3), np.eye(3)]), [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    # integrals over it: x^2 is 1/60, xy is 1/120
    about_origin = np.full((3, 3), -1 / 120) + np.eye(3) * (2 / 60 + 1 / 120)
    cg = np.full(3, 0.25)
    tensor = about_origin - (cg @ cg * np.eye(3) - np.outer(cg, cg)) / 6
    return mesh, rb.Inertia(1 / 6, cg=cg, inertia=tensor)


@pytest.fixture
def saved(tmp_path):
    def save(mesh, ending="stl", name="mesh"):
        path = tmp_path / f"{name}.{ending}"
        mesh.export(path, file_type="stl_ascii" if ending == "STL" else ending.lower())
        return path

    return save


@pytest.mark.parametrize("ending", ["stl", "STL", "obj"])
def test_meshes_of_a_cube_and_a_tetrahedron_have_the_closed_form_inertias(saved, ending):
    cube = trimesh.creation.box(extents=(0.5, 0.25, 2.0))
    cube.apply_translation((1.0, -0.5, 4.0))  # exact in float32, the precision of a binary STL
    path = saved(cube, ending)
    expected = rb.Inertia.box((0.5, 0.25, 2.0), density=7850, cg=(1.0, -0.5, 4.0))
    assert_same(inertia_of_mesh(path, density="Steel"), expected)
    by_mass = rb.Inertia.box((0.005, 0.0025, 0.02), mass=3.0, cg=(0.01, -0.005, 0.04))
    assert_same(inertia_of_mesh(path, mass=3.0, units="cm"), by_mass)
    mesh, expected = tetrahedron()
    assert_same(inertia_of_mesh(saved(mesh, ending, "corner"), density=1.0), expected)


def test_mass_and_inertia_of_a_mesh_scale_with_its_unit(saved):
    mesh, one = tetrahedron()
    for units, scale in ((0.5, 0.5), ("mm", 1e-3), ("in", INCH), (1e-9, 1e-9)):
        expected = rb.Inertia(one.mass * scale**3, cg=one.cg * scale, inertia=one.inertia * scale**5)
        assert_same(inertia_of_mesh(saved(mesh), density=1, units=units), expected)


def test_thin_sheets_and_nested_parts_are_solids(saved):
    sheet = trimesh.creation.box(extents=(1.0, 1.0, 2.0**-23))
    expected = rb.Inertia.box((1, 1, 2.0**-23), density=1)
    assert_same(inertia_of_mesh(saved(sheet), density=1.0), expected, 1e-9)
    shells = [trimesh.creation.box(extents=(size,) * 3) for size in (4.0, 2.0, 1.0)]
    shells[1].invert()
    found = inertia_of_mesh(saved(trimesh.util.concatenate(shells)), density=1.0)
    assert found.mass == pytest.approx(64 - 8 + 1, rel=1e-14)


def test_the_inertia_of_a_mesh_far_from_its_origin_is_accurate(saved):
    cube = trimesh.creation.box(extents=(1.0, 2.0, 4.0))
    cube.apply_translation((1e6, 0.0, 0.0))
    found = inertia_of_mesh(saved(cube), density=1.0)
    np.testing.assert_allclose(found.inertia, rb.Inertia.box((1, 2, 4), density=1).inertia, rtol=0, atol=1e-13)
    assert found.cg.tolist() == [1e6, 0.0, 0.0]


@pytest.mark.parametrize("inner, outer, sign", [(1.0, 2.0, -1), (1.0, 0.0, 1)])
def test_hollows_and_several_parts_are_integrated_correctly(saved, inner, outer, sign):
    parts = [trimesh.creation.box(extents=(2.0, 2.0, 2.0))]
    expected = rb.Inertia.box((2, 2, 2), density=1)
    if sign < 0:
        hollow = trimesh.creation.box(extents=(inner, inner, inner))
        hollow.invert()
        parts.append(hollow)
        tensor = expected.inertia - rb.Inertia.box((inner,) * 3, density=1).inertia
        expected = rb.Inertia(8 - inner**3, cg=(0, 0, 0), inertia=tensor)
    else:
        beside = trimesh.creation.box(extents=(inner,) * 3)
        beside.apply_translation((1.5, 0.25, 0.25))  # touches a face from outside
        parts.append(beside)
        expected = expected + rb.Inertia.box((inner,) * 3, density=1, cg=(1.5, 0.25, 0.25))
    assert_same(inertia_of_mesh(saved(trimesh.util.concatenate(parts)), density=1.0), expected)


def with_a_hole(mesh):
    return trimesh.Trimesh(mesh.vertices, mesh.faces[1:], process=False)


def inside_out(mesh):
    return trimesh.Trimesh(mesh.vertices, mesh.faces[:, ::-1], process=False)


def one_turned(mesh):
    faces = mesh.faces.copy()
    faces[0] = faces[0, ::-1]
    return trimesh.Trimesh(mesh.vertices, faces, process=False)


def beside(mesh, other, distance=5.0):
    other = other.copy()
    other.apply_translation((distance, 0, 0))
    return trimesh.util.concatenate([mesh, other])


@pytest.mark.parametrize(
    "spoil, sentence",
    [
        (with_a_hole, "not closed: 3 of its edges do not join two triangles; expected a surface without holes"),
        (inside_out, "encloses the volume -8; expected a positive volume"),
        (one_turned, "neighboring triangles have opposite orientations"),
        (lambda cube: beside(cube, with_a_hole(cube)), "not closed: 3 of its edges"),
        (
            lambda cube: beside(cube, inside_out(cube.copy().apply_scale(0.5))),
            r"part 2 of 2 of the mesh is inside out or lies inside another part \(winding number 0 below",
        ),
        (
            lambda cube: beside(cube, cube.copy().apply_scale(0.5), 0.0),
            r"lies inside another part \(winding number 2 below its surface\); expected 1",
        ),
        (lambda cube: beside(cube, cube, 2.0), "edges do not join two triangles"),
        (lambda cube: trimesh.Trimesh(cube.vertices * [1, 1, 0], cube.faces, process=False), "encloses the volume 0"),
        (lambda cube: trimesh.Trimesh(cube.vertices * [0, 0, 0], cube.faces, process=False), "has no triangles"),
    ],
    ids=["hole", "inverted", "one_turned", "second_open", "second_inverted", "nested", "touching", "flat", "point"],
)
@pytest.mark.parametrize("ending", ["stl", "obj"])
def test_a_mesh_that_is_not_closed_is_refused(saved, spoil, sentence, ending):
    path = saved(spoil(trimesh.creation.box(extents=(2.0, 2.0, 2.0))), ending)
    with pytest.raises(rb.FileFormatError, match=sentence) as caught:
        inertia_of_mesh(path, density=1.0)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    "name, text, sentence",
    [
        ("mesh.stl", b"solid nothing\nendsolid\n", "mesh"),
        ("mesh.stl", b"", "mesh"),
        ("mesh.stl", b"\x00" * 83, "no triangles"),
        ("mesh.stl", b"\x00" * 80 + b"\x05\x00\x00\x00" + b"\x00" * 60, "no triangles"),
        ("mesh.obj", b"v 0 0 0\nv 1 0 0\n", "mesh"),
        ("mesh.obj", b"v 0 0 nan\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "some coordinates are NaN or infinite"),
        ("mesh.obj", b"v 0 0 0\nv 1 0 0\nf 1 2 7\n", "cannot be read"),
        ("mesh.ply", b"ply\n", "the name ends in '.ply'; expected a mesh, '.stl' or '.obj'"),
    ],
)
def test_files_without_a_mesh_are_refused(tmp_path, name, text, sentence):
    path = tmp_path / name
    path.write_bytes(text)
    with pytest.raises(rb.FileFormatError, match=sentence):
        inertia_of_mesh(path, density=1.0)


def test_a_missing_mesh_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.stl: no such file"):
        inertia_of_mesh(tmp_path / "none.stl", density=1.0)


@pytest.mark.parametrize(
    "settings, sentence",
    [
        ({}, "mass is None and density is None; expected exactly one of them"),
        ({"mass": 1.0, "density": "steel"}, "expected exactly one of them"),
        ({"density": "stone"}, "material is 'stone'; expected a density in kg/m.3, or one of ABS"),
        ({"mass": -1.0}, "mass is -1.0; expected a positive number"),
        ({"mass": "heavy"}, "mass is 'heavy'"),
        ({"mass": 1.0, "units": 0.0}, "units is 0.0; expected a positive number .* in m., or one of m, cm, mm, in"),
        ({"mass": 1.0, "units": "furlong"}, "units is 'furlong'"),
    ],
)
def test_invalid_settings_of_a_mesh_are_refused(saved, settings, sentence):
    with pytest.raises(rb.ModelError, match=sentence):
        inertia_of_mesh(saved(trimesh.creation.box()), **settings)


# Optional packages

WITHOUT = """
import sys
sys.modules["pint"] = sys.modules["trimesh"] = None  # an import of either now fails
from rbchain.io.meshes import inertia_of_mesh
from rbchain.model.units import FACTORS, SI, Units
for call in (lambda: Units("SI"), lambda: inertia_of_mesh(sys.argv[1], density=1.0)):
    try:
        call()
    except ImportError as error:
        print(error)
"""


def test_missing_packages_are_named_and_imported_only_when_used(saved):
    command = [sys.executable, "-c", WITHOUT, saved(trimesh.creation.box())]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == [
        missing_package("units need the package pint", "units"),
        missing_package("meshes need the package trimesh", "meshes"),
    ]
