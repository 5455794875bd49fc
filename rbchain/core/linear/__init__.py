"""Linearized rates, Jacobians and sensitivities."""
