"""Scans: functions of a sequence that carry a state from step to step."""
