"""Code generation: stand-alone source code of a model's functions, recorded from the kernels."""
