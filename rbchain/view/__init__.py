"""Viewer in the browser, films and images of mechanisms."""

import importlib.util

from ..errors import missing_package

_missing = [name for name in ("viser", "trimesh", "matplotlib") if importlib.util.find_spec(name) is None]
if _missing:
    need = f"the viewer, films and images need the package {_missing[0]}"
    raise ImportError(missing_package(need, "view"))
