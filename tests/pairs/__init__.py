"""Features in pairs: a covering array of mechanisms, drives, forces, methods, precisions and ways to run."""
