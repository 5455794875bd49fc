"""The kinematic tree: its arrays, its joints, and the poses and velocities of its bodies."""
