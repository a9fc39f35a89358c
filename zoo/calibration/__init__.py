"""Calibration: what assay's bounds and other projects' rules let through, on the same cases."""
