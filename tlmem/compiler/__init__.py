"""Functions whose memory is decided before they run: ``@tlmem.compile``."""
