"""Sessions: shells that one asks for by an id, and whose state lasts from call to call."""
