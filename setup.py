"""What pyproject.toml cannot say: the mapped packages and the extension module.

The reading side works without a compiler. ``TLMEM_PURE=1`` asks for it alone (a wheel for every
platform); a build that fails for want of a compiler ends there too, with a message.
``TLMEM_REQUIRE_NATIVE=1``, set by the Makefile, turns that failure into an error.
"""

import os
import sys

from setuptools import find_packages, setup
from setuptools.command.build_ext import build_ext

BESIDE = {"tlmem.dashboards": "dashboards", "tlmem.scenarios": "scenarios"}


class BuildNative(build_ext):
    """Builds the extension module, and says in plain words what is missing when it could not."""

    def build_extension(self, ext):
        """Builds one extension; a failure of an optional one is reported here and swallowed."""
        try:
            super().build_extension(ext)
        except Exception as error:
            if not ext.optional:
                raise
            print(
                f"tlmem: {ext.name} could not be built ({error}). Reading and reporting will work, "
                "recording will not; install a C compiler and Python's headers and try again.",
                file=sys.stderr,
            )


def is_set(name):
    """Whether an environment variable says yes."""
    return os.environ.get(name, "") not in ("", "0")


found = ["tlmem", *(f"tlmem.{p}" for p in find_packages("tlmem"))]
for name, where in BESIDE.items():
    found += [name, *(f"{name}.{p}" for p in find_packages(where))]

pure = is_set("TLMEM_PURE")
setup(
    packages=found,
    package_dir={"tlmem": "tlmem", **BESIDE},
    cffi_modules=[] if pure else ["native/build_ffi.py:ffibuilder"],
    cmdclass={"build_ext": BuildNative},
)
