"""Motion over time: Runge-Kutta steps, step control, drives, events and functions of the user."""
