"""Published and own measurements: schema, data, cleaning."""
