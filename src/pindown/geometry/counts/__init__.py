"""How many cells or pieces there can be: bounds, and the families that reach them."""
