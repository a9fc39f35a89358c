"""``assay train``: what is trained how, what is refused, what theory says, and what is printed."""
