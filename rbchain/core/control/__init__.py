"""Drives, actuators and the clocks of sampled controllers."""
