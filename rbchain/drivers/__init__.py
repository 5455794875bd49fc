"""Drivers, the compiled functions that Python calls: loops over blocks of lanes, shared among threads."""
