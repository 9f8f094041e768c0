"""Directories as streams of bytes, out and in: tar, with or without gzip, and zip."""
