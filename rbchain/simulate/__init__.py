"""Simulations of a model: checks, the call of the compiled driver, and trajectories."""
