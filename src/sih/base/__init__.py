"""What every room stands on: errors, records, files, means with errors, how objects show themselves."""
