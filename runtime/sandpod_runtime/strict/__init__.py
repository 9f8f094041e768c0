"""`isolation: Strict`: the user's commands in a world of their own, from which the runtime cannot be seen."""
