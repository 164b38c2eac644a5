"""The calls of the API, one module per kind of resource; each method only describes its request."""
