"""A runtime's life: what it begins with, when it falls asleep, and how it ends."""
