"""Options of Numba, packs of lanes, their memory and trigonometry: the layer below the mechanics."""
