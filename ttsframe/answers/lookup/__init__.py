"""Keys of distinct strings: the table in memory and the sympy workers."""
