"""What is true: the executable specification, in pure numpy."""
