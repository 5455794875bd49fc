"""Names of quantities of one kind. Reports import this module, which imports nothing large."""

#: Quantities with one value for each sample, which do not depend on the time.
OF_EQUILIBRIA = ("frequency", "damping_ratio", "gain_margin", "equilibrium")
OF_MODES = ("frequency", "damping_ratio")
OF_REACTIONS = ("reaction_force", "reaction_moment")
OF_CONSTRAINTS = ("constraint_force", "constraint_moment")
#: Forces that joints and constraints transmit.
OF_BEARINGS = (*OF_REACTIONS, *OF_CONSTRAINTS)
