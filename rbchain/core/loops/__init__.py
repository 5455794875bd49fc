"""Closed loops: constraints, their rows, and the dynamics with constraint forces."""
