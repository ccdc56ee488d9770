"""How far a small change inside a ReLU network can move its output, proved."""
