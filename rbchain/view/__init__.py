"""Viewer in the browser, films and pictures of mechanisms."""

import importlib.util

_missing = [name for name in ("viser", "trimesh", "matplotlib") if importlib.util.find_spec(name) is None]
if _missing:
    problem = f"the package {_missing[0]} is not installed"
    raise ImportError(f"{problem}; the viewer, films and pictures need it: pip install 'rbchain[view]'")
