"""What a change of a few biases of one layer can do, one corner of its cube after the other."""
