"""The API: REST over the same use cases as events and the command line."""
