"""Closed forms that the general solver is judged by. They use NumPy and SciPy, and nothing else of rbchain."""

from .two_link import TwoLink

__all__ = ["TwoLink"]
