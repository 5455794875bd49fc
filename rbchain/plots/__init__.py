"""Plots of trajectories, and models in notebooks. They need matplotlib at most, and none of the packages of `view`."""
