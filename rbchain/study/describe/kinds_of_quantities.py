"""Names of quantities of one kind. Reports import this module, which imports nothing large."""

#: Quantities with one number for each sample, which do not depend on the time.
OF_EQUILIBRIA = ("frequency", "damping_ratio", "gain_margin", "equilibrium")
OF_MODES = ("frequency", "damping_ratio")
