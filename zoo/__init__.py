"""Known-bad and known-good backends: how well do the properties detect?"""
