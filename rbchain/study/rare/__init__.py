"""Probabilities of rare events: the methods on standard normal vectors, and their simulations by a study."""
