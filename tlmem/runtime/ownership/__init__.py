"""Who owns a tensor and until when: scopes, frames, structs, pools, parameters, named holders.

In: tensors, structs, and things of other libraries that have a ``handle``. Out: counts in the C
core, and the end of what nothing holds any more.
May import: runtime.
Third-party: numpy.
"""
