"""Why it is true: obligations about the spec, discharged by running the spec's own functions."""
