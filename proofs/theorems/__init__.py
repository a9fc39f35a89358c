"""The obligations, grouped by what they are about and by the arithmetic they are read in."""
