"""Entries of `BlockActions.settings` (COUNT,), which all samples of a block share."""

COMPENSATES = 0  # 1 if some drive compensates gravity
COMPUTES = 1  # 1 if some drive uses computed torque
FUNCTION = 2  # address of the user's function, or 0
FUNCTION_NUMBERS = 3  # index of its first parameter in `numbers`
FUNCTION_COUNT = 4  # number of its parameters
EXTERNAL_FORCES = 5  # 0 in the controllers' sweeps, which omit wrenches and drag; else 1
IMPLICIT = 6  # 1 if the step is implicit in springs and damping
CURRENT = 7  # first of the three signals with the velocity of the water, or -1 without a current
HYBRID = 8  # 1 if hybrid dynamics is required: a motion is prescribed, or the step is implicit
DERIVATIVES = 9  # address of the user's function for the derivatives of its forces, or 0
CONTROLLER_MODEL = 10  # 1 if some drive, also a sampled one, computes forces with the controllers' model
SAMPLED_GROUP = 11  # 1 + the group of sampled controllers that computes its outputs, or 0
COUNT = 12
