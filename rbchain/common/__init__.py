"""Functions for all packages: conversions of numbers, names, files and processes."""
