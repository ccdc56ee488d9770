"""Tuned numbers of max-pooling networks."""

# With 8 d^3 units a patch of 8 x 8 pixels would need two million; the guarantee says when this cuts in.
MAX_UNITS = 4096
# Units and batch of joint training.
JOINT_UNITS = 64
JOINT_BATCH = 256

# Scores of one chunk of points take at most this many numbers.
MAX_CHUNK_NUMBERS = 4_000_000

# Units whose directions have at least this cosine have learnt the same pattern.
SAME_DIRECTION_COSINE = 0.9
# Comparing all pairs takes the square of this in memory; the lightest units are left out.
MAX_CLUSTERED_UNITS = 2048

# The conditions on the radius are strict inequalities; a tenth is left as room.
RADIUS_ROOM = 0.9
