"""Estimation of the parameters of a model from measured trajectories."""
