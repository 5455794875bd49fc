"""Functions for all packages: conversions of values, names, files and processes."""
