"""Integration over time: Runge-Kutta steps, step control, drives, events and user functions."""
