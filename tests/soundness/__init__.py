"""A random attack on everything that the library calls proved, against exact rational arithmetic."""
