"""Entries of `BlockActions.settings` (COUNT,), which all samples of a block share."""

COMPENSATES = 0  # 1 if some drive compensates gravity
COMPUTES = 1  # 1 if some drive uses computed torque
FUNCTIONS = 2  # number of user functions for joint forces
DERIVATIVES = 3  # 1 if each of them has a function for the derivatives of its forces
EXTERNAL_FORCES = 4  # 0 in the controllers' sweeps, which omit wrenches and drag; else 1
IMPLICIT = 5  # 1 if the step is implicit in springs and damping
CURRENT = 6  # first of the three signals with the velocity of the water, or -1 without a current
HYBRID = 7  # 1 if hybrid dynamics is required: a motion is prescribed, or the step is implicit
CONTROLLER_MODEL = 8  # 1 if some drive, including a sampled one, computes forces with the controllers' model
SAMPLED_GROUP = 9  # 1 + the group of sampled controllers that computes its outputs, or 0
COUNT = 10
