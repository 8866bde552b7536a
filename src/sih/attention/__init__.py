"""Reads attention, whosever it is: by offset, against log P, head by head, and against the construction's."""
