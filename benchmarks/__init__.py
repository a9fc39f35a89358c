"""What assay costs and what it detects, measured."""
