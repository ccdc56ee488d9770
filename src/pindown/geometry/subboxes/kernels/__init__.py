"""The compiled loop behind stitching, in a folder of its own: editing others does not recompile it."""
