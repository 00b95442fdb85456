"""Programs without a fault, which must not be blamed for what they do."""
