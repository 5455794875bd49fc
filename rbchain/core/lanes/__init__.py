"""Values of SIMD lanes: arithmetic, memory, trigonometric functions, norms and random numbers."""
