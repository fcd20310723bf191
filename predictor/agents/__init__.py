"""Tasks of many turns: their lengths, and how long a model takes over them."""
