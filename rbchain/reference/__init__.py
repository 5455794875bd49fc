"""Closed-form solutions for tests of the general solver. They do not use its kernels, only NumPy and SciPy."""

from .two_link import TwoLink

__all__ = ["TwoLink"]
