"""What is decided about a function before it runs: one pass a file, functions over the IR."""
