"""Small problems that models are trained on: data that is generated or read, and the trainer."""
