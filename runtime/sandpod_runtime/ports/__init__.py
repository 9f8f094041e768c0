"""Ports: what listens on them, and whether something answers there."""
