"""Drives, wrenches and events over time, the signals that they follow, and their arrays for the kernels."""
