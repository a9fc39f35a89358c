"""Models: configurations, layouts of their state, counts and costs."""
