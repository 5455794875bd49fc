"""Paths of parameters in `vary`, `replace`, `simulate(derivatives=)` and `fit`."""

import numpy as np
import pytest

import rbchain as rb

plain = pytest.mark.plain_python


def an_arm():
    """Return a floating base with two links; the joints have other names than the bodies."""
    builder = rb.ModelBuilder(name="arm")
    builder.add_body("base", joint=rb.Free(), joint_name="floor", inertia=rb.Inertia.box((1, 2, 3), mass=4.0))
    for body, joint, parent in (("link1", "shoulder", "base"), ("link2", "elbow", "link1")):
        builder.add_body(
            body,
            parent=parent,
            joint=rb.Revolute(axis=(0, 1, 0)),
            joint_name=joint,
            placement=rb.Pose(translation=(1, 0, 0)),
            inertia=rb.Inertia.box((0.5, 0.1, 0.2), mass=1.5),
        )
    return builder.build()


@plain
def test_a_path_sets_one_number_per_sample_and_leaves_the_others():
    arm, masses = an_arm(), np.array([1.0, 2.0, 3.0, 4.0])
    many = arm.vary({"link2.mass": masses})
    assert many.batch_shape == (4,)
    assert np.array_equal(many.mass, np.stack([*np.tile(arm.mass[:2], (4, 1)).T, masses], -1))


@plain
def test_as_many_samples_as_bodies_are_no_longer_mistaken_for_bodies():
    arm = rb.Model.serial_chain(2)
    assert arm.vary({"link1.mass": [1.0, 2.0]}).mass.tolist() == [[1.0, 0.1], [2.0, 0.1]]


@plain
def test_paths_of_vectors_and_tensors_set_whole_values_or_components():
    arm = an_arm()
    many = arm.vary({"link1.cg": np.arange(6.0).reshape(2, 3), "link2.cg.y": [5.0, 6.0], "base.inertia.xz": 0.1})
    assert np.array_equal(many.cg[:, 1], [[0, 1, 2], [3, 4, 5]])
    assert np.array_equal(many.cg[:, 2], [[0.0, 5.0, 0.0], [0.0, 6.0, 0.0]])
    assert many.inertia[0, 0, 2] == many.inertia[0, 2, 0] == 0.1
    whole = arm.vary({"base.inertia": [1.0, 0.1, 0.2, 2.0, 0.3, 2.5]}).inertia[0]
    assert np.array_equal(whole, [[1.0, 0.1, 0.2], [0.1, 2.0, 0.3], [0.2, 0.3, 2.5]])
    assert np.array_equal(arm.vary({"link1.cg.0": 7.0}).cg, arm.vary({"link1.cg.x": 7.0}).cg)
    assert np.array_equal(arm.vary({"gravity.x": [1.0, 2.0]}).gravity[:, 0], [1.0, 2.0])


@plain
def test_a_number_of_a_joint_holds_for_all_its_degrees_of_freedom_and_a_component_for_one():
    arm = an_arm()
    damping = arm.vary({"floor.damping": [0.5, 0.6], "elbow.damping": 2.0}).damping
    assert np.array_equal(damping, [[0.5] * 6 + [0.0, 2.0], [0.6] * 6 + [0.0, 2.0]])
    assert arm.vary({"floor.friction.3": 0.5}).friction.tolist() == [0.0] * 3 + [0.5] + [0.0] * 4


@plain
def test_patterns_and_braces_name_several_parameters():
    arm = an_arm()
    assert arm.vary({"link[12].mass": 3.0}).mass.tolist() == [4.0, 3.0, 3.0]
    assert arm.vary({"{base,link2}.mass": 3.0}).mass.tolist() == [3.0, 1.5, 3.0]
    assert arm.vary({"floor.damping.[0-2]": 1.0}).damping.tolist() == [1.0] * 3 + [0.0] * 5
    assert arm.vary({"link1.cg.[xz]": 0.1}).cg[1].tolist() == [0.1, 0.0, 0.1]


@plain
def test_batch_shapes_of_paths_broadcast():
    many = an_arm().vary({"link1.mass": np.ones((3, 1)), "elbow.damping": np.arange(4.0), "shoulder.friction": 0.1})
    assert many.batch_shape == (3, 4)
    assert many.damping[2, 3, -1] == 3.0
    assert many.friction.shape == (8,)


@plain
def test_paths_of_constraints_have_the_names_of_their_arguments():
    builder = rb.ModelBuilder()
    builder.add_body("bob", joint=rb.Free(), inertia=rb.Inertia.sphere(0.1, mass=1.0))
    builder.add_constraint(rb.DistanceConstraint("rod", None, "bob", point_a=(0, 0, 0), point_b=(0, 0, 0), length=1.0))
    bob = builder.build()
    many = bob.vary({"rod.length": [1.0, 2.0], "rod.point_b.z": 0.1})
    assert many.constraint_length.tolist() == [[1.0], [2.0]]
    assert many.constraint_point_b[..., 2].tolist() == [0.1]


@plain
def test_replace_with_paths_changes_what_controllers_know():
    arm = an_arm()
    assert arm.replace({"link1.mass": 3.0}).nominal.mass[1] == 3.0
    either = (
        arm.vary({"link1.mass": 3.0}).replace({"link2.mass": 9.0}),
        arm.replace({"link2.mass": 9.0}).vary({"link1.mass": 3.0}),
        arm.vary({"link1.mass": [3.0, 3.0]}).replace({"link2.mass": 9.0})[0],
    )
    for model in either:
        assert (model.mass.tolist(), model.nominal.mass.tolist()) == (
            either[1].mass.tolist(),
            either[1].nominal.mass.tolist(),
        )
        assert model.nominal.mass[1] == arm.mass[1]
    assert arm.vary({"link1.mass": 3.0}).nominal.mass[1] == 1.5


@plain
def test_names_with_dots_and_brackets_are_owners():
    builder = rb.ModelBuilder()
    for name in ("arm.1", "arm[2]"):
        builder.add_body(name, joint=rb.Revolute(), inertia=rb.Inertia.rod(1.0, mass=1.0))
    model = builder.build()
    assert model.vary({"arm.1.mass": 2.0, "arm[2].cg.x": 0.3}).mass.tolist() == [2.0, 1.0]


@plain
@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("lnk2.mass", r"nothing named 'lnk2' has 'mass'.*did you mean link2"),
        ("link2.mas", r"'link2' has no 'mas'.*did you mean mass"),
        ("link2.damping", r"did you mean elbow\.damping"),
        ("elbow.mass", r"did you mean link2\.mass"),
        ("link2.gravity", r"belongs to the whole model; write 'gravity'"),
        ("link2.cg.w", r"'link2\.cg' has no 'w'; expected one of x, y, z"),
        ("link2.mass.x", r"'link2\.mass' has no 'x'; expected no component"),
        ("gravity.w", r"'gravity' has no 'w'"),
        ("floor.damping.6", r"'floor\.damping' has no '6'; expected one of 0, 1"),
        ("elbow.lower_limit", r"'lower_limit' is now called 'stop_lower'; write 'elbow\.stop_lower'"),
        ("link2.upper_limit", r"write 'elbow\.stop_upper'"),
        ("*.lower_limit", r"write '\*\.stop_lower'"),
        ("link2.center.x", r"'center' is now called 'buoyancy_center'; write 'link2\.buoyancy_center\.x'"),
        ("mass", r"needs an owner, such as \"base\.mass\""),
        ("nothing", r"expected \"owner\.field\""),
    ],
)
def test_a_path_without_a_parameter_is_refused_with_a_suggestion(path, message):
    with pytest.raises(rb.UnknownNameError, match=message):
        an_arm().vary({path: 1.0})


@plain
@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ({"link1.mass": [1.0, 2.0], "link2.mass": [1.0, 2.0, 3.0]}, r"batch shapes differ: link1\.mass \(2,\), link2"),
        ({"*.mass": 1.0, "link2.mass": 2.0}, r"both set 'link2\.mass'"),
        ({"link2.cg": [0.0, 0.0, 0.0], "link2.cg.x": 2.0}, r"both set 'link2\.cg'"),
        ({"link2.cg": [1.0, 2.0]}, r"link2\.cg has shape \(2,\); expected \(3,\)"),
        ({"link2.mass": -1.0}, r"body 'link2': mass is -1"),
        ([1.0, 2.0], r"expected paths and values"),
    ],
)
def test_values_that_do_not_fit_their_paths_are_refused(paths, message):
    with pytest.raises(rb.ModelError, match=message):
        an_arm().vary(paths)


@plain
def test_derivatives_by_paths_are_entries_of_the_derivatives_by_fields():
    arm = rb.Model.serial_chain(2).replace(damping=[0.01, 0.02], rotor_inertia=[1e-4, 1e-4], gear_ratio=[10.0, 20.0])
    fields = ["q", "mass", "cg", "inertia", "damping", "gear_ratio"]
    paths = ["link2.q", "link1.mass", "link2.cg", "link2.cg.y", "link2.inertia", "link1.inertia.xy", "link2.gear_ratio"]
    settings = {"duration": 0.1, "method": "rk4", "step": 0.02}
    whole = arm.simulate([0.3, 0.2], [0.0, 0.0], derivatives=fields, save_at=2, **settings).derivatives
    found = arm.simulate([0.3, 0.2], [0.0, 0.0], derivatives=paths, save_at=2, **settings).derivatives
    assert list(found) == paths
    expected = [
        whole["q"][..., 1],
        whole["mass"][..., 0],
        whole["cg"][..., 1, :],
        whole["cg"][..., 1, 1],
        whole["inertia"][..., 1, :, :],
        2.0 * whole["inertia"][..., 0, 0, 1],
        whole["gear_ratio"][..., 1],
    ]
    for path, value in zip(paths, expected, strict=True):
        assert np.allclose(found[path], value, rtol=1e-12, atol=1e-15), path


@plain
def test_derivatives_by_a_path_of_several_parameters_are_refused():
    with pytest.raises(rb.ArgumentError, match=r"matches 2 parameters; expected the path of one"):
        rb.Model.serial_chain(2).simulate([0.0, 0.0], [0.0, 0.0], duration=0.1, derivatives=["*.mass"], save_at=2)
    with pytest.raises(rb.UnknownNameError, match=r"did you mean link2"):
        rb.Model.serial_chain(2).simulate([0.0, 0.0], [0.0, 0.0], duration=0.1, derivatives=["lnk2.mass"], save_at=2)


@pytest.mark.slow
@plain
def test_a_fit_by_paths_leaves_the_other_parameters():
    true = rb.Model.serial_chain(2).replace(damping=[0.01, 0.02])
    first = true.replace({"link2.damping": 0.03, "link2.inertia": 1.1 * true.inertia[1] + np.diag([1e-4] * 3)})
    motion = true.simulate([0.5, 0.3], [0.0, 0.0], duration=0.3, save_at=11)
    fit = rb.fit(first, motion, ["link2.damping"], starts=1)
    assert fit.names == ("link2.damping",)
    assert fit.model.damping[0] == 0.01
    with pytest.raises(rb.ArgumentError, match="each parameter once"):
        rb.fit(first, motion, ["damping", "link2.damping"])
    with pytest.raises(rb.ArgumentError, match=r'contains "link2\.friction", which is zero.*a positive initial guess'):
        rb.fit(first, motion, ["link2.friction"])


def test_the_inertia_scales_with_the_mass_of_a_path():
    arm = rb.Model.serial_chain(3)
    mass = np.array([0.2, 0.3])
    many = arm.vary({"link2.mass_and_inertia": mass, "link1.damping": 0.1})
    expected = arm.vary(
        {
            "link2.mass": mass,
            "link2.inertia": arm.inertia[1] * (mass / arm.mass[1])[:, None, None],
            "link1.damping": 0.1,
        }
    )
    for name in ("mass", "inertia", "damping"):
        np.testing.assert_allclose(getattr(many, name), getattr(expected, name), rtol=1e-15)
    again = many.vary({"*.mass_and_inertia": 0.4})
    np.testing.assert_allclose(
        again.inertia, np.broadcast_to(arm.inertia * (0.4 / arm.mass)[:, None, None], again.inertia.shape), rtol=1e-15
    )
    assert arm.replace({"link1.mass_and_inertia": 0.2}).nominal.inertia[0, 1, 1] == 2 * arm.inertia[0, 1, 1]


@pytest.mark.parametrize(
    ("paths", "words"),
    [
        ({"link1.mass_and_inertia": 1.0, "link1.mass": 2.0}, "both set 'link1.mass'"),
        ({"link1.mass_and_inertia": 1.0, "link1.inertia.xx": 2.0}, "both set the inertia of a body"),
    ],
)
def test_two_values_of_a_mass_or_an_inertia_are_refused(paths, words):
    with pytest.raises(rb.ModelError, match=words):
        rb.Model.serial_chain(2).vary(paths)


def test_the_inertia_of_a_body_without_mass_does_not_scale():
    massless = rb.Model.serial_chain(2).vary({"link1.mass": 0.0})
    with pytest.raises(rb.ModelError, match=r"'link1\.mass_and_inertia' scales the inertia of a body without mass"):
        massless.vary({"link1.mass_and_inertia": 1.0})
