"""The value of an expression tree: exact numbers, certified intervals, fingerprints."""
