"""Drives, forces and events over time."""
