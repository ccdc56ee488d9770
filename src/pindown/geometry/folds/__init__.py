"""Where a network is not differentiable, and what the picture of its folds tells about its layers."""
