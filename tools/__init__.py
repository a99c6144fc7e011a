"""What writes the files that follow from code."""
