"""Numba options, packs of lanes, their memory and trigonometry: everything below the mechanics."""
