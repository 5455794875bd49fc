"""The Puma 560, built from Denavit-Hartenberg tables, compared with published values.

* Corke, Robotics Toolbox: the parameters of `models.DH.Puma560`, and the expected values of the toolbox's own tests,
  `tests/test_DHRobot.py` (Python) and `unit_test/SerialLinkTest.m` (MATLAB). Those at qz to qn are also in Corke,
  "Robotics, Vision and Control", chapter 9. They are printed to four decimals.
* Armstrong, Khatib and Burdick, "The explicit dynamic model and inertial parameters of the PUMA 560 arm", IEEE
  International Conference on Robotics and Automation, 1986. The paper describes the same arm by modified tables. It
  gives the equations in symbols with 23 inertial and 5 gravitational constants.
"""

import numpy as np
import pytest

import rbchain as rb
from rbchain.io.dh import DHLink, from_dh

pytestmark = pytest.mark.plain_python
PRINTED = {"rtol": 0, "atol": 0.51e-4}  # of four decimals
DEGREE, QUARTER = np.pi / 180, np.pi / 2
ZEROS, ONES = np.zeros(6), np.ones(6)

# a, alpha, d; mass, cg and tensor; rotor, gear, viscous and dry friction of the motor; joint limits in degrees
CORKE = [
    ((0, QUARTER, 0.67183), (0, (0, 0, 0), (0, 0.35, 0)),
     (200e-6, -62.6111, 1.48e-3, (0.395, -0.435)), (-160, 160)),
    ((0.4318, 0, 0), (17.4, (-0.3638, 0.006, 0.2275), (0.13, 0.524, 0.539)),
     (200e-6, 107.815, 0.817e-3, (0.126, -0.071)), (-45, 225)),
    ((0.0203, -QUARTER, 0.15005), (4.8, (-0.0203, -0.0141, 0.070), (0.066, 0.086, 0.0125)),
     (200e-6, -53.7063, 1.38e-3, (0.132, -0.105)), (-225, 45)),
    ((0, QUARTER, 0.4318), (0.82, (0, 0.019, 0), (1.8e-3, 1.3e-3, 1.8e-3)),
     (33e-6, 76.0364, 71.2e-6, (11.2e-3, -16.9e-3)), (-110, 170)),
    ((0, -QUARTER, 0), (0.34, (0, 0, 0), (0.3e-3, 0.4e-3, 0.3e-3)),
     (33e-6, 71.923, 82.6e-6, (9.26e-3, -14.5e-3)), (-100, 100)),
    ((0, 0, 0), (0.09, (0, 0, 0.032), (0.15e-3, 0.15e-3, 0.04e-3)),
     (33e-6, 76.686, 36.7e-6, (3.96e-3, -10.5e-3)), (-266, 266)),
]  # fmt: skip
QZ, QR = np.zeros(6), np.array([0, QUARTER, -QUARTER, 0, 0, 0])
QS, QN = np.array([0, 0, -QUARTER, 0, 0, 0]), np.array([0, QUARTER / 2, np.pi, 0, QUARTER / 2, 0])
# from the MATLAB tests, where the first two are called qn and the velocities qz
QM, QM2 = np.array([0, QUARTER / 2, -np.pi, 1, QUARTER / 2, 0]), np.array([0, QUARTER, -np.pi, 1, QUARTER, 0])
QV = np.array([0, 1.0, 0, 0, 2.0, 0])


def inertia_of(mass, cg, inertia=(0, 0, 0)):
    return rb.Inertia(mass, cg=cg, inertia=inertia)


def corke_links():
    return [
        DHLink(
            *row,
            inertia=inertia_of(*body),
            rotor_inertia=rotor,
            gear_ratio=gear,
            motor_viscous_friction=viscous,
            motor_coulomb_friction=coulomb,
            limits=rb.JointLimits(lower=lower * DEGREE, upper=upper * DEGREE),
        )
        for row, body, (rotor, gear, viscous, coulomb), (lower, upper) in CORKE
    ]


@pytest.fixture(scope="module")
def puma():
    """The arm of the toolbox, with friction that changes its sign discontinuously."""
    arm = from_dh(corke_links(), name="puma560", nonphysical_inertia="warn")
    return arm.vary(friction_velocity=np.full(6, 1e-9))


def torques(arm, q, qd, qdd, **settings):
    """The toolbox's `rne`: torques of the motors at the joints, which move the arm and overcome friction."""
    return arm.inverse_dynamics(q, qd, qdd, **settings) - arm.passive_forces(q, qd)


def accelerations(arm, q, qd, tau):
    """The toolbox's `accel`."""
    return arm.forward_dynamics(q, qd, tau + arm.passive_forces(q, qd))


def test_unphysical_measured_tensors_are_refused_by_default():
    with pytest.raises(rb.ModelError, match=r"link1.*triangle inequality.*nonphysical_inertia"):
        from_dh(corke_links())
    with pytest.warns(UserWarning, match=r"'link1', 'link3'"):
        arm = from_dh(corke_links(), name="measured", nonphysical_inertia="warn")
    np.testing.assert_array_equal(arm.mass, [body[0] for _, body, _, _ in CORKE])


@pytest.mark.parametrize(
    ("q", "position", "rotation"),
    [
        (QZ, [0.4521, -0.15005, 1.10363], np.eye(3)),
        (QR, [0.0203, -0.15005, 1.53543], np.eye(3)),
        (QS, [0.8636, -0.15005, 0.65153], [[0, 0, 1], [0, 1, 0], [-1, 0, 0]]),
        (QN, [0.5963, -0.15005, 0.6575], [[0, 0, 1], [0, 1, 0], [-1, 0, 0]]),
    ],
)
def test_the_pose_of_the_hand_agrees_with_published_values(puma, q, position, rotation):
    pose = puma.frame_poses(q, "end_effector")
    np.testing.assert_allclose(pose.translation, position, **PRINTED)
    np.testing.assert_allclose(pose.rotation, rotation, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("q", "expected"),
    [
        (QV, [[0.1501, -0.6137, -0.2504, 0, 0, 0], [-0.1191, 0, 0, 0, 0, 0], [0, -0.1191, -0.3524, 0, 0, 0],
              [0, 0, 0, -0.8415, 0, -0.1411], [0, -1, -1, 0, -1, 0], [1, 0, 0, 0.5403, 0, -0.9900]]),
        (QM, [[0.1501, 0.0144, 0.3197, 0, 0, 0], [0.5963, 0, 0, 0, 0, 0], [0, 0.5963, 0.2910, 0, 0, 0],
              [0, 0, 0, 0.7071, -0.5950, 0.7702], [0, -1, -1, 0, -0.5403, -0.5950],
              [1, 0, 0, -0.7071, -0.5950, -0.2298]]),
    ],
)  # fmt: skip
def test_jacobians_agree_with_the_toolbox(puma, q, expected):
    np.testing.assert_allclose(puma.jacobian(q, "end_effector"), expected, **PRINTED)


def test_limits_agree_with_the_toolbox(puma):
    np.testing.assert_allclose(puma.position_limits, [np.radians(limits) for *_, limits in CORKE], rtol=1e-15)


@pytest.mark.parametrize(
    ("q", "expected"),
    [
        (QN, [0, 31.6399, 6.0351, 0, 0.0283, 0]),
        (QS, [0, 46.0069, 8.7722, 0, 0.0283, 0]),
        (QM, [0, 31.6334, 6.0286, -0.0119, 0.0218, 0]),
        (QM2, [0, 7.7198, 8.7439, -0.0238, 0, 0]),
    ],
)
def test_gravity_forces_agree_with_the_toolbox(puma, q, expected):
    np.testing.assert_allclose(puma.gravity_forces(q), expected, **PRINTED)


@pytest.mark.parametrize(
    ("q", "expected"),
    [
        (QN, [[3.6594, -0.4044, 0.1006, -0.0025, 0, 0], [-0.4044, 4.4137, 0.3509, 0, 0.0024, 0],
              [0.1006, 0.3509, 0.9378, 0, 0.0015, 0], [-0.0025, 0, 0, 0.1925, 0, 0],
              [0, 0.0024, 0.0015, 0, 0.1713, 0], [0, 0, 0, 0, 0, 0.1941]]),
        (QM, [[3.6591, -0.4042, 0.1013, -0.0021, -0.0015, 0], [-0.4042, 4.4128, 0.3504, -0.0008, 0.0017, 0],
              [0.1013, 0.3504, 0.9377, -0.0008, 0.0008, 0], [-0.0021, -0.0008, -0.0008, 0.1925, 0, 0],
              [-0.0015, 0.0017, 0.0008, 0, 0.1713, 0], [0, 0, 0, 0, 0, 0.1941]]),
        (QM2, [[2.6621, -0.6880, 0.0035, -0.0007, -0.0010, 0], [-0.6880, 4.4114, 0.3487, -0.0010, 0.0015, 0],
               [0.0035, 0.3487, 0.9359, -0.0010, 0.0003, 0], [-0.0007, -0.0010, -0.0010, 0.1926, 0, 0],
               [-0.0010, 0.0015, 0.0003, 0, 0.1713, 0], [0, 0, 0, 0, 0, 0.1941]]),
    ],
)  # fmt: skip
def test_mass_matrices_agree_with_the_toolbox(puma, q, expected):
    np.testing.assert_allclose(puma.mass_matrix(q), expected, **PRINTED)


@pytest.mark.parametrize(
    ("q", "expected"),
    [
        (QN, [[17.2954, -2.7542, -9.6233, 0, 0.2795, 0], [-2.7542, 12.1909, 1.2459, -0.3254, -0.0703, -0.9652],
              [-9.6233, 1.2459, 13.3348, 0, 0.2767, 0], [0, -0.3254, 0, 0.1941, 0, 0.1941],
              [0.2795, -0.0703, 0.2767, 0, 0.1713, 0], [0, -0.9652, 0, 0.1941, 0, 0.5791]]),
        (QM, [[18.0741, -2.2763, -8.8446, -0.0283, 0.7541, -0.4015],
              [-2.2763, 11.2461, 1.7238, -0.0750, 0.2214, -0.4733],
              [-8.8446, 1.7238, 14.1135, -0.0300, 0.7525, -0.4032],
              [-0.0283, -0.0750, -0.0300, 0.1377, -0.0171, 0.0492],
              [0.7541, 0.2214, 0.7525, -0.0171, 0.4612, -0.2461],
              [-0.4015, -0.4733, -0.4032, 0.0492, -0.2461, 0.3457]]),
    ],
)  # fmt: skip
def test_inertia_of_the_hand_agrees_with_the_toolbox(puma, q, expected):
    back = np.linalg.inv(puma.jacobian(q, "end_effector"))
    np.testing.assert_allclose(back.T @ puma.mass_matrix(q) @ back, expected, **PRINTED)


@pytest.mark.parametrize(
    ("q", "qd", "expected"),
    [
        (QN, [1, 2, 3, 1, 2, 3],
         [[-0.1735, -2.0494, -0.1178, -0.0002, -0.0045, 0.0001], [0.6274, 1.1572, 1.9287, -0.0015, -0.0003, 0],
          [-0.3608, -0.7734, -0.0018, -0.0009, -0.0064, 0], [0.0011, 0.0005, -0.0001, 0.0002, 0.0002, -0.0001],
          [-0.0002, 0.0028, 0.0046, -0.0002, 0, 0], [0.0001, 0, 0, 0, 0, 0]]),
        (QM, 0.5 * ONES,
         [[-0.1336, -0.6458, 0.0845, 0.0005, -0.0008, 0], [0.3136, 0.1922, 0.3851, -0.0018, -0.0007, 0],
          [-0.1803, -0.1934, -0.0005, -0.0009, -0.0014, 0], [0.0007, 0.0008, 0.0003, 0.0001, 0.0003, 0],
          [-0.0004, 0.0005, 0.0005, -0.0003, 0, 0], [0, 0, 0, 0, 0, 0]]),
        (QM2, 0.2 * ONES,
         [[-0.0715, -0.1242, -0.0534, 0.0008, -0.0001, 0], [0.0731, 0.0765, 0.1535, -0.0009, -0.0007, 0],
          [-0.0023, -0.0772, -0.0003, -0.0004, -0.0007, 0], [0.0004, 0.0006, 0.0003, 0, 0.0002, 0],
          [0.0002, 0.0004, 0.0004, -0.0002, 0, 0], [0, 0, 0, 0, 0, 0]]),
    ],
)  # fmt: skip
def test_coriolis_matrices_agree_with_the_toolbox(puma, q, qd, expected):
    """Both use Christoffel symbols. At QN, row sums that the toolbox prints as 0.0000 are up to 4e-5."""
    np.testing.assert_allclose(puma.coriolis_matrix(q, qd), expected, **PRINTED)


@pytest.mark.parametrize(
    ("q", "qd", "qdd", "expected"),
    [
        (QN, ZEROS, ONES, [3.35311, 36.0025, 7.42596, 0.190043, 0.203441, 0.194133]),
        (QN, ONES, ONES, [32.4952, 60.867, 17.7436, 1.45452, 1.29911, 0.713781]),
        (QN, ONES, ZEROS, [29.1421, 56.5044, 16.3528, 1.26448, 1.12392, 0.519648]),
        # in the negative direction, computed with roboticstoolbox-python 1.5.0, because its tests have no such values
        (QN, -ONES, ZEROS, [-34.4287, 16.2711, -4.3365, -1.6954, -1.4395, -1.0209]),
        (QM, QV, QV, [-0.9748, 59.1306, 5.9889, -0.0108, 1.8872, 0.0001]),
    ],
)
def test_torques_with_friction_in_both_directions_agree_with_the_toolbox(puma, q, qd, qdd, expected):
    np.testing.assert_allclose(torques(puma, q, qd, qdd), expected, **PRINTED)


def test_torques_without_gravity_and_under_a_wrench_agree_with_the_toolbox(puma):
    weightless = puma.vary(gravity=np.zeros(3))
    expected = [32.4952, 29.2271, 11.7085, 1.45452, 1.27086, 0.713781]
    np.testing.assert_allclose(torques(weightless, QN, ONES, ONES), expected, **PRINTED)
    # the hand presses with (1, 2, 3) N and (1, 2, 3) N m, in its own axes
    wrenches = np.zeros((6, 6))
    wrenches[5] = -np.tile(puma.frame_poses(QN, "end_effector").rotation @ [1.0, 2.0, 3.0], 2)
    expected = [0.642756, 29.0866, 4.70321, 2.82843, -1.97175, 3]
    np.testing.assert_allclose(torques(puma, QN, ZEROS, ZEROS, wrenches=wrenches), expected, **PRINTED)


@pytest.mark.parametrize(
    ("q", "qd", "held", "expected"),
    [
        (QV, 0.5 * ONES, (QN, QV), [-9.3397, 4.9666, 1.6095, -5.4305, 5.9885, -2.1228]),
        (QV, 0.1 * ONES, (QM, QV), [-8.2760, 5.8119, 3.1487, -4.6392, 6.9558, -1.6774]),
        (QV / 2, 0.2 * ONES, (QM2, QV / 2), [-8.3467, -4.8514, 6.0575, -4.9232, 3.1244, -1.7861]),
    ],
)
def test_accelerations_agree_with_the_toolbox_for_matlab(puma, q, qd, held, expected):
    """The torques are those for velocities and accelerations held[1] at positions held[0]."""
    tau = torques(puma, held[0], held[1], held[1])
    np.testing.assert_allclose(accelerations(puma, q, qd, tau), expected, **PRINTED)


def test_accelerations_agree_with_the_toolbox_for_python(puma):
    qd, tau = np.array([0.1, 0.2, 0.8, 0.2, 0.5, 1.0]), np.array([1.0, 3.2, 1.8, 0.1, 0.7, 4.6])
    expected = [-7.4102, -9.8432, -10.9694, -4.4314, -0.9881, 21.0228]
    np.testing.assert_allclose(accelerations(puma, QN, qd, tau), expected, **PRINTED)


# --- Armstrong, Khatib and Burdick ------------------------------------------------------------------------------------

# a, alpha, d of the modified table; mass, cg, tensor
ARMSTRONG = [
    ((0, 0, 0), (0, (0, 0, 0), (0, 0, 0.35))),
    ((0, -QUARTER, 0.2435), (17.40, (0.068, 0.006, -0.016), (0.130, 0.524, 0.539))),
    ((0.4318, 0, -0.0934), (4.80, (0, -0.070, 0.014), (0.066, 0.0125, 0.086))),
    ((-0.0203, QUARTER, 0.4331), (0.82, (0, 0, -0.019), (1.8e-3, 1.8e-3, 1.3e-3))),
    ((0, -QUARTER, 0), (0.34, (0, 0, 0), (0.3e-3, 0.3e-3, 0.4e-3))),
    ((0, QUARTER, 0), (0.09, (0, 0, 0.032), (0.15e-3, 0.15e-3, 0.04e-3))),
]
#: Inertial constants I1 to I23, kg m^2, as the paper prints them, and a unit of the last digit printed.
CONSTANTS = [
    (1.43, 1e-2), (1.75, 1e-2), (1.38, 1e-2), (6.90e-1, 1e-3), (3.72e-1, 1e-3), (3.33e-1, 1e-3), (2.98e-1, 1e-3),
    (-1.34e-1, 1e-3), (2.38e-2, 1e-4), (-2.13e-2, 1e-4), (-1.42e-2, 1e-4), (-1.10e-2, 1e-4), (-3.79e-3, 1e-5),
    (1.64e-3, 1e-5), (1.25e-3, 1e-5), (1.24e-3, 1e-5), (6.42e-4, 1e-6), (4.31e-4, 1e-6), (3.0e-4, 1e-5),
    (-2.02e-4, 1e-6), (-1.0e-4, 1e-5), (-5.8e-5, 1e-6), (4.0e-5, 1e-6),
]  # fmt: skip
#: Gravitational constants g1 to g5, N m.
GRAVITATIONAL = [(-37.2, 1e-1), (-8.44, 1e-2), (1.02, 1e-2), (2.49e-1, 1e-3), (-2.82e-2, 1e-4)]


@pytest.fixture(scope="module")
def stanford():
    """The arm of the paper, without rotors."""
    links = [DHLink(*row, inertia=inertia_of(*body)) for row, body in ARMSTRONG]
    return from_dh(links, convention="modified", name="puma560", nonphysical_inertia="warn")


def kinetic_terms(q):
    """The paper's mass matrix without rotors: its upper triangle (21, 23) as coefficients of I1 to I23."""
    _, s2, s3, s4, s5, _ = np.sin(q)
    _, c2, c3, c4, c5, _ = np.cos(q)
    s, c = np.sin(q[1] + q[2]), np.cos(q[1] + q[2])
    swing = s3 * c5 + c3 * c4 * s5
    spread = s4 * (s * c4 * c5**2 + c * s5 * c5)
    inner = {6: 1, 15: 2 * c5, 20: s4**2 * s5**2, 21: s4**2, 22: 2 * c4 * s5}
    reach = {5: s3, 12: c3, 16: swing}
    elbow = {8: c, 13: s, 15: -c * s4 * s5, 18: s * c4 * s5 - c * c5, 19: s * s4 * c4, 20: spread, 22: s * s4 * s5}
    rows = [
        {1: 1, 3: c2**2, 5: 2 * c2 * s, 7: s**2, 10: s * c, 11: s2 * c2, 12: 2 * c2 * c,
         15: 2 * (s**2 * c5 + s * c * c4 * s5), 16: 2 * c2 * (s * c5 + c * c4 * s5), 18: 2 * s4 * s5,
         20: s5**2 * (s**2 * (1 + c4**2) - 1) - 2 * s * c * c4 * s5 * c5, 21: s**2 * c4**2,
         22: 2 * (s * c * c5 + c**2 * c4 * s5)},
        elbow | {4: s2, 9: c2, 16: s2 * s4 * s5},
        elbow,
        {14: c, 15: s * c4 * s5, 16: c2 * c4 * s5, 18: c * s4 * s5, 20: -(s * c4 * s5 * c5 + c * s5**2),
         22: c * c4 * s5},
        {15: s * s4 * c5, 16: c2 * s4 * c5, 17: s * s4, 18: s * s5 - c * c4 * c5, 22: c * s4 * c5},
        {23: c * c5 - s * c4 * s5},
        inner | {2: 1} | {i: 2 * x for i, x in reach.items()},
        inner | reach,
        {15: -s4 * s5, 16: -s3 * s4 * s5, 20: s4 * s5 * c5},
        {15: c4 * c5, 16: c3 * s5 + s3 * c4 * c5, 17: c4, 22: s5},
        {23: s4 * s5},
        inner,
        {15: -s4 * s5, 20: s4 * s5 * c5},
        {15: c4 * c5, 17: c4, 22: s5},
        {23: s4 * s5},
        {14: 1, 20: -(s5**2)}, {}, {23: c5},
        {17: 1}, {}, {23: 1},
    ]  # fmt: skip
    return np.array([[row.get(i, 0.0) for i in range(1, 24)] for row in rows])


def weight_terms(q):
    """The paper's gravity forces (6, 5) as coefficients of g1 to g5."""
    _, s2, _, s4, s5, _ = np.sin(q)
    _, c2, _, c4, c5, _ = np.cos(q)
    s, c = np.sin(q[1] + q[2]), np.cos(q[1] + q[2])
    hand = s * c5 + c * c4 * s5
    return np.array([
        [0, 0, 0, 0, 0], [c2, s, s2, c, hand], [0, s, 0, c, hand],
        [0, 0, 0, 0, -s * s4 * s5], [0, 0, 0, 0, c * s5 + s * c4 * c5], [0, 0, 0, 0, 0],
    ])  # fmt: skip


def fitted(terms, values):
    """Return the constants that reproduce the values in every posture to round-off. Each constant is determined."""
    terms, values = np.concatenate(terms), np.concatenate(values)
    constants, _, rank, _ = np.linalg.lstsq(terms, values)
    assert rank == terms.shape[1]
    np.testing.assert_allclose(terms @ constants, values, rtol=0, atol=1e-13 * np.abs(values).max())
    return constants


def test_the_mass_matrix_agrees_with_armstrong(stanford):
    """In symbols to rounding. Numbers to two units of the last digit, for the parameters are rounded as well.

    I1 and I3 in print, 1.43 and 1.38, do not follow from the parameters in print: these give 1.553 and 1.602, by the
    paper's own formulas for both.
    """
    q = np.random.default_rng(0).uniform(-3, 3, (40, 6))
    upper = np.triu_indices(6)
    found = fitted([kinetic_terms(x) for x in q], [M[upper] for M in stanford.mass_matrix(q)])
    printed, unit = np.array(CONSTANTS).T
    follows = np.ones(23, bool)
    follows[[0, 2]] = False
    assert (np.abs(found - printed) <= 2 * unit)[follows].all(), (found, printed)
    m, (x, y, z), (xx, yy, _) = ARMSTRONG[1][1]
    outer = sum(body[0] for _, body in ARMSTRONG[2:])
    a, shoulder, offset = ARMSTRONG[2][0][0], ARMSTRONG[1][0][2], ARMSTRONG[1][0][2] + ARMSTRONG[2][0][2]
    assert found[2] == pytest.approx(yy - xx + m * (x**2 - y**2) + outer * a**2, rel=1e-12)
    m3, (_, _, z3), (_, yy3, _) = ARMSTRONG[2][1]
    wrist = sum(body[0] for _, body in ARMSTRONG[3:]) * ARMSTRONG[3][0][0] ** 2
    wrist += ARMSTRONG[3][1][2][2] + ARMSTRONG[4][1][2][1] + ARMSTRONG[5][1][2][2]
    about_waist = 0.35 + xx + m * (y**2 + (shoulder + z) ** 2) + outer * offset**2
    about_waist += yy3 + m3 * (z3**2 + 2 * offset * z3) + wrist
    assert found[0] == pytest.approx(about_waist, rel=1e-12)


def test_gravity_forces_agree_with_armstrong(stanford):
    q = np.random.default_rng(1).uniform(-3, 3, (40, 6))
    found = fitted([weight_terms(x) for x in q], list(stanford.gravity_forces(q)))
    printed, unit = np.array(GRAVITATIONAL).T
    assert (np.abs(found - printed) <= 2 * unit).all(), (found, printed)


def test_rotor_inertias_agree_with_armstrongs_measurements():
    """The rotors and gears are those of the toolbox's model `mdl_puma560akb`."""
    rotors = [291e-6, 409e-6, 299e-6, 35e-6, 35e-6, 35e-6]
    gears = [-62.6111, 107.815, -53.7063, 76.0364, 71.923, 76.686]
    links = [
        DHLink(*row, inertia=inertia_of(*body), rotor_inertia=rotor, gear_ratio=gear)
        for (row, body), rotor, gear in zip(ARMSTRONG, rotors, gears, strict=True)
    ]
    arm = from_dh(links, convention="modified", name="puma560", nonphysical_inertia="warn")
    measured, error = np.array([1.14, 4.71, 0.827, 0.200, 0.179, 0.193]), [0.27, 0.54, 0.093, 0.016, 0.014, 0.016]
    assert (np.abs(arm.armature - measured) < error).all()
    plain = arm.vary(rotor_inertia=np.zeros(6))
    np.testing.assert_allclose(arm.mass_matrix(QN) - plain.mass_matrix(QN), np.diag(arm.armature), rtol=0, atol=1e-14)
