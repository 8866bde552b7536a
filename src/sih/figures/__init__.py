"""Drawing: a file for each form of figure, `gallery` for which data is drawn in which form."""
