"""What the rooms must agree on: the resources, their names, how secrets are derived, and the way to the
Kubernetes API.
"""
