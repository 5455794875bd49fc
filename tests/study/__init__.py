"""Tests of Monte Carlo studies."""
