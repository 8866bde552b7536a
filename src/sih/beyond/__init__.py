"""Subjects beyond the paper, one folder each: files as in `sih.paper`."""
