"""From the bytes of a file to events in time order, each free paired with its allocation.

In: a file (docs/format.md). Out: arrays of events, names of code, chains of Python objects.
Reading order: ``segments`` (slots), ``blocks``, ``live_file`` (what a file holds at one moment),
``timeline`` (time order), ``pairing``, ``checkpoint``; ``symbols`` and ``chains`` are its names;
``remote`` is a file in object storage.
May import: errors, events.
Third-party: numpy. Inside functions: fsspec.
"""
