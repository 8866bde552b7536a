"""Any model's attention, read: by offset, against log P, head by head, against the construction's; and changed."""
