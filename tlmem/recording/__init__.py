"""What a recording is: ``reader`` opens a file as a ``Recording``.

In: the bytes of a file, whole, damaged or still being written. Out: pandas tables.
``format`` turns bytes into events, ``tables`` turns events into tables, ``reader`` calls both;
``family`` finds the recordings of a program's child processes, ``identity`` names them,
``source_lines`` has the text of lines.
May import: errors, events, units, recording.format, recording.tables.
Third-party: numpy, pandas. Inside functions: psutil, pyarrow.
"""
