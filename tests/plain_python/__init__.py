"""What holds whatever the kernels compile to: run in plain Python, where no quantity takes seconds to compile."""
