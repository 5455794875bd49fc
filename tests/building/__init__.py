"""Models from ModelBuilder, serial chains, and models with parameters per sample."""
