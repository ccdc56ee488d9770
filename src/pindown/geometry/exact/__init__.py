"""The same in exact rational arithmetic: slow, and right whatever the weights."""
