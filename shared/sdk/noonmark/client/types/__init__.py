"""Static types of what the API answers; at run time they are plain dicts."""
