"""What tests share."""

from pathlib import Path


def standin_service_path() -> str:
    """Path of the script that stands in for a service."""
    return str(Path(__file__).with_name("standin_service.py"))
