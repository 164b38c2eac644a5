"""Everything that crosses a process border, as pydantic models."""
