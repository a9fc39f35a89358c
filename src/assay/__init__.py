"""assay: does this kernel compute what the mathematics says, and how do we know?"""
