"""The calls of the API, one module per kind of thing; each method only says which request it is."""
