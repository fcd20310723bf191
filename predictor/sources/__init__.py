"""Where models come from: files, caches of other programs, web servers, the catalogue."""

from tokcast.predictor.sources.open import open_model
from tokcast.predictor.sources.places import model_folders

__all__ = ["model_folders", "open_model"]
