"""What goes past the paper, a folder for each subject: files as in `sih.paper`."""
