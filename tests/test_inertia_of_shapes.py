"""Inertias of massless links of URDF files, from their shapes and a density."""

import numpy as np
import pytest
import trimesh
from scipy.integrate import quad

import rbchain as rb
from rbchain.io.inertia_of_shapes import inertia_of_shape

plain = pytest.mark.plain_python
POSE = rb.Pose((0.3, -0.2, 0.1), [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
URDF = """
<robot name="toy">
  <link name="base"/>
  <joint name="j1" type="revolute">
    <parent link="base"/> <child link="a"/> <axis xyz="0 1 0"/> <limit effort="1" velocity="1"/>
  </joint>
  <link name="a">
    <collision> <origin xyz="0.3 -0.2 0.1" rpy="0 0 1.5707963267948966"/>
      <geometry> <box size="0.1 0.2 0.4"/> </geometry> </collision>
    <collision> <geometry> <sphere radius="0.1"/> </geometry> </collision>
  </link>
  <joint name="f" type="fixed"> <parent link="a"/> <child link="fin"/> <origin xyz="1 0 0"/> </joint>
  <link name="fin"> <visual> <geometry> <cylinder radius="0.1" length="0.3"/> </geometry> </visual> </link>
  <joint name="j2" type="continuous"> <parent link="a"/> <child link="b"/> <axis xyz="1 0 0"/> </joint>
  <link name="b">
    <inertial> <mass value="2"/> <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/> </inertial>
    <collision> <geometry> <sphere radius="0.1"/> </geometry> </collision>
  </link>
  {more}
</robot>
"""
OPEN = """
<joint name="j3" type="continuous"> <parent link="a"/> <child link="c"/> <axis xyz="1 0 0"/> </joint>
<link name="c"> <collision> <geometry> <mesh filename="open.stl"/> </geometry> </collision> </link>
"""


def by_slices(radius, length):
    """Mass and moments of a capsule of density 1, by quadrature over discs along z."""
    half = length / 2

    def square(z):
        return radius**2 - max(abs(z) - half, 0.0) ** 2

    def integral(function):
        parts = (-half - radius, -half), (-half, half), (half, half + radius)
        return sum(quad(function, *part, epsabs=1e-14)[0] for part in parts)

    mass = integral(lambda z: np.pi * square(z))
    along = integral(lambda z: np.pi * square(z) ** 2 / 2)
    across = integral(lambda z: np.pi * square(z) ** 2 / 4 + np.pi * square(z) * z**2)
    return rb.Inertia(mass, inertia=(across, across, along))


def box_mesh(folder):
    """A box in mm, with a corner at the origin."""
    mesh = trimesh.creation.box(extents=(20, 40, 60))
    mesh.apply_translation((10, 20, 30))
    mesh.export(folder / "box.stl")
    mesh.update_faces(np.arange(len(mesh.faces)) > 0)
    mesh.export(folder / "open.stl")
    return str(folder / "box.stl")


def check(found, expected):
    for name in ("mass", "cg", "inertia"):
        wanted = getattr(expected, name)
        scale = max(np.abs(wanted).max(), 1e-300)
        np.testing.assert_allclose(getattr(found, name), wanted, rtol=0, atol=2e-7 * scale)  # STL has float32


@plain
@pytest.mark.parametrize("kind", [rb.Visual, rb.CollisionShape])
def test_the_inertias_of_shapes(tmp_path, kind):
    file, mirrored = box_mesh(tmp_path), (0.001, 0.002, -0.003)
    solids = [
        (("box", (0.1, 0.2, 0.3)), rb.Inertia.box((0.1, 0.2, 0.3), density=1)),
        (("sphere", (0.2,)), rb.Inertia.sphere(0.2, density=1)),
        (("cylinder", (0.1, 0.4)), rb.Inertia.cylinder(0.1, 0.4, density=1)),
        (("capsule", (0.1, 0.4)), by_slices(0.1, 0.4)),
        (("ellipsoid", (0.2, 0.2, 0.2)), rb.Inertia.sphere(0.2, density=1)),
        (("mesh", mirrored), rb.Inertia.box((0.02, 0.08, 0.18), density=1, cg=(0.01, 0.04, -0.09))),
    ]
    for (shape, size), expected in solids:
        options = {"pose": POSE} | ({"file": file} if shape == "mesh" else {})
        check(
            inertia_of_shape(kind(shape, size, **options), 7.0),
            rb.Inertia(7.0 * expected.mass, cg=expected.cg, inertia=7.0 * expected.inertia).moved(POSE),
        )
    # an ellipsoid is a sphere with other coordinates: the integral of x^2 is m a^2 / 5
    inertia = inertia_of_shape(kind("ellipsoid", (1.0, 2.0, 3.0)), 1.0)
    np.testing.assert_allclose(inertia.mass, 8.0 * np.pi)
    np.testing.assert_allclose(np.diag(inertia.inertia), inertia.mass / 5 * np.array([13.0, 10.0, 5.0]))


@plain
def test_a_density_gives_massless_bodies_the_inertia_of_their_shapes(tmp_path):
    file = tmp_path / "toy.urdf"
    file.write_text(URDF.format(more=""))
    with pytest.warns(UserWarning, match=r"links 'a', 'fin' have no mass in the file: their inertias follow from"):
        model = rb.load(file, density="steel")
    density = rb.density_of("steel")
    box = rb.Inertia.box((0.1, 0.2, 0.4), density=density).moved(POSE)
    fin = rb.Inertia.cylinder(0.1, 0.3, density=density, cg=(1.0, 0.0, 0.0))
    expected = box + rb.Inertia.sphere(0.1, density=density) + fin
    check(rb.Inertia(model.mass[0], cg=model.cg[0], inertia=model.inertia[0]), expected)
    np.testing.assert_array_equal(model.mass[1], 2.0)  # it has a mass in the file
    assert not model.bodies_without_inertia


@plain
def test_the_warning_of_massless_bodies_names_the_density(tmp_path):
    file = tmp_path / "toy.urdf"
    file.write_text(URDF.format(more=OPEN))
    with pytest.warns(UserWarning, match=r"rbchain.load\(path, density=1000.0\)"):
        rb.load(file)
    box_mesh(tmp_path)
    with pytest.warns(UserWarning, match=r"shapes without inertia: link 'c': .*the mesh is not closed") as caught:
        assert rb.load(file, density=1000.0).bodies_without_inertia == ("c",)
    assert "density=1000.0" not in str(caught[0].message)


@plain
def test_wrong_densities_are_refused(tmp_path):
    file = tmp_path / "toy.urdf"
    file.write_text(URDF.format(more=""))
    with pytest.raises(rb.ModelError, match="material is 'stel'"):
        rb.load(file, density="stel")
    with pytest.raises(rb.ModelError, match="density"):
        rb.load(file, density=-1.0)
    with pytest.raises(rb.FileFormatError, match=r"density is 1000.0; remove density: it applies only to URDF files"):
        rb.load("examples/seven_joint_arm.toml", density=1000.0)
