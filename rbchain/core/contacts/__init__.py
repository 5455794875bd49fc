"""Contacts, stops and dry friction: their rows, modes, forces and impacts."""
