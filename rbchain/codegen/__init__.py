"""Stand-alone source code of one model's functions, written by the kernels themselves."""
