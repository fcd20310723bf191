"""A local page and an API over predictions: `tokcast serve`."""
