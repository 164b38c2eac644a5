"""What the API answers: one module per resource."""
