"""What a tensor is and what can be computed with it."""
