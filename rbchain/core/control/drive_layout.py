"""Rows of `SharedActions.drives`, kinds of drives, and the order of their gains."""

# Rows of `SharedActions.drives`, one column for each degree of freedom.
KIND = 0
SIGNAL = 1  # column of the signal that is its force, or that it follows
GAINS = 2  # index of its KP in `BlockActions.numbers`; KI, KD and LIMIT follow
INTEGRAL = 3  # the row of the state that integrates the error, or -1
COMPENSATES_GRAVITY = 4  # 1 if it adds the force that balances gravity
FOLLOWS_TARGET = 5  # 1 if its reference is the target of a sampled controller
ROWS = 6
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
