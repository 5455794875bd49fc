"""Independent judges of the dynamics: Newton-Euler at 40 digits, Pinocchio and MuJoCo."""
