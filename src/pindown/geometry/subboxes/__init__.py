"""A complex found sub-box by sub-box: side by side, stitched exactly, streamed to disk if large."""
