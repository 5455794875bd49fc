"""The methods of `rbchain.Model` by subject: each module is one of its base classes."""
