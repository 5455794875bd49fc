"""Rows of `SharedActions.drives`, kinds of drives, and the order of their gains.

`SharedActions.drives` has one column for each drive. Column i < n is the first drive of dof i, or has KIND_NONE if the
dof has no drive. The other drives of the dofs follow in further columns. A drive that prescribes a motion is the only
one of its dof. A drive with computed torque is the first one of its dof.
"""

# Rows of `SharedActions.drives`.
KIND = 0
SIGNAL = 1  # column of the signal that is its force, or that it follows
GAINS = 2  # index of its KP in `BlockActions.numbers`; KI, KD and LIMIT follow
INTEGRAL = 3  # the row of the state that integrates the error, or -1
COMPENSATES_GRAVITY = 4  # 1 if it adds the force that balances gravity
FOLLOWS_TARGET = 5  # 1 if its reference is the target of a sampled controller
DOF = 6
NEXT = 7  # column of the next drive of its dof, or -1
FEEDFORWARD = 8  # column of the signal of the force that it adds to its own, or -1
RESTS = 9  # of column i < n: 1 if dof i is held while gravity forces are computed, 0 if dofs coupled to it hold it
LAG = 10  # index of the time constant of the lag of its feedforward in `BlockActions.numbers`, or -1
LAGGED = 11  # the row of the state with the lagged feedforward, or -1
ROWS = 12
(
    KIND_NONE,
    KIND_FORCE,
    KIND_PRESCRIBED_ACCELERATION,
    KIND_PRESCRIBED_VELOCITY,
    KIND_PRESCRIBED_POSITION,
    KIND_PID,
    KIND_COMPUTED_TORQUE,
    KIND_HELD,  # the latched output of a sampled controller
) = range(8)
PRESCRIBED_KINDS = (KIND_PRESCRIBED_ACCELERATION, KIND_PRESCRIBED_VELOCITY, KIND_PRESCRIBED_POSITION)
GAIN_KP, GAIN_KI, GAIN_KD, GAIN_LIMIT = 0, 1, 2, 3
