"""How far can it be trusted? Accuracy, steepness, ranges, bounds, robustness, symmetries."""
