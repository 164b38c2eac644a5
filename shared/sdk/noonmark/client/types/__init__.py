"""Static types of API responses; at run time they are plain dicts."""
