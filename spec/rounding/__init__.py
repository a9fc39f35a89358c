"""How rounding errors arise and travel: the rules of running error analysis, one file a kind."""
