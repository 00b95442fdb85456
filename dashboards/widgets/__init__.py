"""What one sees, one widget a file, named after it."""
