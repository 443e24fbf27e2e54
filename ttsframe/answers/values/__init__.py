"""Values of expression trees: exact numbers, certified intervals, fingerprints."""
