"""Linear analysis: linear models, modes and equilibria of a batch of mechanisms."""
