"""Tests of rbchain."""
