"""Mechanisms described by names and frames, and their flattening into arrays."""
