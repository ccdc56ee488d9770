"""A lecture course on the foundations of deep learning: its slides and figures."""
