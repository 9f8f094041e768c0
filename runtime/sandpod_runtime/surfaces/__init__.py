"""What clients call: one module for each surface, each a class with `routes()`."""
