"""Finding files by their names and by what is in them."""
