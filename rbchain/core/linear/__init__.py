"""Linearised rates, Jacobians and sensitivities."""
