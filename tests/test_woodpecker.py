"""The woodpecker toy, a published benchmark of friction and impacts: a sleeve jams on a pole, slides and is hit.

A sleeve with play moves on a vertical pole, and a woodpecker is attached to it by a torsion spring. The beak (contact
0) and the lower and upper edge of the sleeve (1, 2) hit the pole.

Sources: Pfeiffer and Glocker (1996), *Multibody Dynamics with Unilateral Contacts*, for the model and its numbers;
Leine, Glocker and van Campen (2001), "Nonlinear dynamics of the woodpecker toy". The state at the time 0 and the
reference states are those of the example Mechanics/Woodpecker of Siconos (file Woodpecker.ref), which Moreau's time
stepping with steps of 2e-5 s has computed.
"""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

import rbchain as rb

SLEEVE_MASS, SLEEVE_INERTIA, BIRD_MASS, BIRD_INERTIA = 3e-4, 5e-9, 4.5e-3, 7e-7  # kg, kg m^2
STIFFNESS, G, MU = 5.6e-3, 9.81, 0.3  # N m / rad, m/s^2, 1
POLE, SLEEVE, EDGE = 2.5e-3, 3.1e-3, 5.8e-3  # radii of pole and sleeve, half the height of the sleeve, m
SPRING, CENTER, BEAK_UP, BEAK = 1e-2, 1.5e-2, 2e-2, 2.01e-2  # l_M, l_G, h_S, l_S, m
GAPS = (SPRING + CENTER - BEAK - POLE, SLEEVE - POLE, SLEEVE - POLE)  # at zero angles, m

# time, y, angle of the sleeve, angle of the woodpecker
SICONOS = np.array(
    [
        [0.08, -7.222318e-3, 9.401909e-2, 1.026125e-1],
        [0.112, -8.492691e-3, -5.315267e-2, -5.962115e-2],
    ]
)
SICONOS_STEP = 2e-5
EVENTS = (5, 8)  # impacts and changes between sticking, sliding and opening up to these times
# highest speeds of these coordinates, m/s and rad/s
SPEEDS = np.array([0.4, 25.0, 18.0])


def toy(scale):
    """Return the toy with angles that are `scale` times as large, its contacts and its state at the time 0.

    The published model is linear in the angles. With lengths times 1 / scale, and inertias and the stiffness times
    1 / scale^2, the linear model for the angles divided by `scale` is the same. The clearances do not change. The terms
    that the linear model neglects are then of the order of `scale`.
    """
    s = 1.0 / scale
    builder = rb.ModelBuilder(gravity=(0, -G, 0))
    builder.add_body("slide", joint=rb.Prismatic((0, 1, 0)), inertia=rb.Inertia(SLEEVE_MASS))
    inertia = rb.Inertia(0.0, inertia=np.full(3, SLEEVE_INERTIA * s**2))
    builder.add_body("sleeve", parent="slide", joint=rb.Revolute(), inertia=inertia)
    inertia = rb.Inertia(BIRD_MASS, cg=(CENTER * s, 0, 0), inertia=np.full(3, BIRD_INERTIA * s**2))
    spring = rb.PassiveForces(stiffness=STIFFNESS * s**2)
    place = rb.Pose((SPRING * s, 0, 0))
    builder.add_body("bird", parent="sleeve", joint=rb.Revolute(), placement=place, inertia=inertia, passive=spring)
    contacts = [
        rb.SphereContact(
            body,
            point=(x * s, y * s, 0),
            radius=0.0,
            plane_point=(reach * s - gap, 0, 0),
            plane_normal=(1, 0, 0),
            friction=MU,
            restitution=e,
            max_records=99,
        )
        for body, x, y, reach, gap, e in (
            ("bird", CENTER - BEAK, BEAK_UP, SPRING + CENTER - BEAK, GAPS[0], 0.5),
            ("sleeve", SLEEVE, -EDGE, SLEEVE, GAPS[1], 0.0),
            ("sleeve", SLEEVE, EDGE, SLEEVE, GAPS[2], 0.0),
        )
    ]

    def gap(angle):
        """Return the gap of the lower edge, which touches the pole at first."""
        return GAPS[1] + s * (EDGE * math.sin(scale * angle) - SLEEVE * (1.0 - math.cos(scale * angle)))

    sleeve = brentq(gap, -0.2, 0.0, xtol=1e-13) + 1e-9  # not inside of the pole
    q, qd = np.array([0.0, sleeve, -0.2788 - sleeve]), np.array([-0.3411, 0.0, -7.4583])
    return builder.build(), contacts, (q * [1, scale, scale])[None], (qd * [1, scale, scale])[None]


def angles(q, scale):
    """Return y and the angles of sleeve and woodpecker against the pole, of the published model."""
    return np.stack([q[..., 0], q[..., 1] / scale, (q[..., 1] + q[..., 2]) / scale], -1)


@pytest.mark.slow
@pytest.mark.plain_python
@pytest.mark.parametrize(
    ("step", "settings"),
    [(0.0, {"method": "rk45", "rtol": 1e-6, "atol": 1e-9}), (2e-4, {"method": "moreau", "step": 2e-4})],
)
def test_the_woodpecker_moves_like_that_of_siconos(step, settings):
    """The sleeve jams, slips, hits the pole with its upper edge, and the beak hits the pole.

    Time stepping shifts an event by up to one step, and the states after it by this time multiplied by the speeds.
    """
    scale = 1e-3
    model, contacts, q, qd = toy(scale)
    motion = model.simulate(q, qd, SICONOS[-1, 0], forces=contacts, save_at=SICONOS[:, 0], **settings)
    assert motion.success
    bounds = np.outer(EVENTS, (step + SICONOS_STEP) * SPEEDS)
    np.testing.assert_array_less(np.abs(angles(motion.q[0], scale) - SICONOS[:, 1:]), bounds)
    beak, _, upper = motion.impacts
    assert beak.count[0] == 1 and upper.count[0] == 2
    # the velocity of the woodpecker in the reference jumps between 0.08102 s and 0.08104 s
    np.testing.assert_allclose(beak.t[0, 0], 0.08103, rtol=0, atol=EVENTS[0] * (step + SICONOS_STEP))
    assert motion.sticking[1].count[0] == 1
    jams, slips = motion.sticking[1].start[0, 0], motion.sticking[1].end[0, 0]
    assert 0.02 < jams < 0.025 and 0.06 < slips < 0.062
