"""How text and files leave a command: whole or not at all, to a terminal, a pipe or a full disk.

In: text, or a function that writes a file. Out: a finished file, or one clear error.
May import: errors.
Third-party: none.
"""
