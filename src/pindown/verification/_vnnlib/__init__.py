"""The VNN-LIB reader: text, networks, exact conjunctions, and sets rounded to float64."""
