"""What operator and gateway agree on: models, names, keys, and the way to the Kubernetes API."""

__version__ = "0.1.0"
