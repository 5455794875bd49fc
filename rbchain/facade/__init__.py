"""The class Model and its methods by subject."""
