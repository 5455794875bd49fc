"""The algorithms of rigid-body dynamics, one per file, for the samples of one block of lanes."""
