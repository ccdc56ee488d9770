"""The polyhedral complex: all cells of a network on a box, listed or counted."""
