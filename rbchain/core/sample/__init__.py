"""Records of a sample in a lane, and the rate of its state."""
