"""The compiled physics: plain functions on numbers and tuples, without names, strings, allocation or exceptions."""
