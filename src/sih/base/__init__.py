"""The base of all packages: errors, records, files, statistics, display of objects."""
