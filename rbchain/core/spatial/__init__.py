"""Spatial vectors and inertias (Featherstone 2008, chapter 2), and how they are stored in memory."""
