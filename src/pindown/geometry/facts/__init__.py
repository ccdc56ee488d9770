"""Facts about the function, read from its cells: extrema, slopes, level sets, shape, what data see."""
