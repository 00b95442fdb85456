"""One module for each source of events that the recorder can feed the log from.

In: the options of a recording. Out: a source that is installed, and removed at the end.
"""
