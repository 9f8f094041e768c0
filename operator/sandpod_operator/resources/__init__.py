"""Builders of the objects that the operator creates. Pure."""
