"""Algorithms of rigid-body dynamics, one per file: each computes one quantity for the samples of a block."""
