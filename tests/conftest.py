"""Fixtures that several test modules share."""

import warnings
from functools import cache

import pytest

from .mechanisms import MECHANISMS


@cache
def mechanism(name):
    """Each mechanism is built once; published robots' known defects need no warning here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MECHANISMS[name]()


@pytest.fixture(params=MECHANISMS)
def model(request):
    """Every mechanism in turn."""
    return mechanism(request.param)
