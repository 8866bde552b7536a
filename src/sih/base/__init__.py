"""The base of all packages: errors, checked records, files, statistics, display of
objects.
"""
