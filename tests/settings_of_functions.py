"""Settings that functions of the tests import."""

GAIN = 1.0
