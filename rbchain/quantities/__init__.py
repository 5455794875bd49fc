"""What is computed of a model, by subject: each module is a part of `rbchain.Model`."""
