"""Where each tensor and each cache of a model lives, what that needs and what it costs."""
