"""From the source of a Python function to the ownership IR.

In: a function, with its source, globals and cells. Out: an ``ir.Function``, numbered; what cannot
be compiled raises ``NotCompilable`` with the place and with what to write instead.
May import: compiler, _exports.
Third-party: none.
"""

from tlmem.compiler.front.function import read as read
