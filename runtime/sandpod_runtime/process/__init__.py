"""Processes: starting them, reading their output within bounds, and ending them with everything they
started.
"""
