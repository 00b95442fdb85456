"""From the ownership IR to a Python function that runs with the lines of the program."""
