"""Drives, controllers, forces, contacts, events and signals, and their conversion to arrays."""
