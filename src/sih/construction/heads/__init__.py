"""Which second-layer head takes which offset: how few heads will do, and why not fewer."""
