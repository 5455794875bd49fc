"""Vectors, motions, forces and inertias in space (Featherstone 2008, chapter 2), and their rows in memory."""
