"""A directory into an archive file, and back."""
