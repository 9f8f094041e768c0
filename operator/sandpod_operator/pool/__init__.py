"""Warm pools: pods of a template that wait, ready and unbound, for the sandboxes that claim them."""
