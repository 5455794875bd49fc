"""Records of a sample in a lane, and the rate of its state. The names of arguments are as in `core.motion`."""
