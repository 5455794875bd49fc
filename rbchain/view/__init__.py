"""Pictures that move: in the browser, as a page of their own, as films."""

import importlib.util

_missing = [name for name in ("viser", "trimesh", "matplotlib") if importlib.util.find_spec(name) is None]
if _missing:
    raise ImportError(f"pictures need the package {_missing[0]}, which is missing: pip install 'rbchain[view]'")
