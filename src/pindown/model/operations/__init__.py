"""The operations of models, by family: each evaluates, bounds, relaxes, counts and writes itself."""
