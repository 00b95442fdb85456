"""What pyproject.toml cannot say: the mapped packages and the extension module.

The reading side works without a compiler. ``TLMEM_PURE=1`` asks for it alone (a wheel for every
platform); a build that fails for want of a compiler ends there too, with a message.
``TLMEM_REQUIRE_NATIVE=1``, set by the Makefile, turns that failure into an error.
"""

import os
import runpy
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.modified import newer_group

BESIDE = {"tlmem.dashboards": "dashboards", "tlmem.scenarios": "scenarios"}
START_UP = "tlmem-follow.pth"
BESIDE_THE_EXTENSION = ("lib", "include")


def replace_file(source, target):
    """Copies beside the target and moves it there: a process that has the old one loaded keeps it
    whole."""
    draft = f"{target}.{os.getpid()}"
    shutil.copy2(source, draft)
    os.replace(draft, target)
    return target


class BuildWithStartUp(build_py):
    """Puts the start-up file beside the package, where ``site`` reads it."""

    def run(self):
        """Builds the modules, then copies the file to where they are installed from."""
        super().run()
        # The wheel of an editable install is what stands in the folder of "install" by now.
        install = self.get_finalized_command("install")
        root = install.install_lib if self.editable_mode else self.build_lib
        self.mkpath(root)
        self.copy_file(START_UP, str(Path(root, START_UP)))

    def get_outputs(self, include_bytecode=True):
        """The same with the file."""
        outputs = super().get_outputs(include_bytecode)
        return outputs if self.editable_mode else [*outputs, str(Path(self.build_lib, START_UP))]


class BuildNative(build_ext):
    """Builds the C library and the extension module that links it; says in plain words what is
    missing when they could not be built."""

    def build_extension(self, ext):
        """Builds one extension; a failure of an optional one is reported here and swallowed."""
        package = Path(self.get_ext_fullpath(ext.name)).parent
        try:
            self.build_library(package)
            ext.library_dirs.append(str(package / "lib"))
            with self.several_at_once():
                super().build_extension(ext)
        except Exception as error:
            if not ext.optional:
                raise
            for beside in BESIDE_THE_EXTENSION:
                shutil.rmtree(package / beside, ignore_errors=True)
            print(
                f"tlmem: {ext.name} could not be built ({error}). Reading and reporting will work, "
                "recording will not; install a C compiler and Python's headers and try again.",
                file=sys.stderr,
            )

    @contextmanager
    def several_at_once(self):
        """The compiler compiles a source on each core, largest first; setuptools gives it all."""
        compile_all = self.compiler.compile

        def compile_each(sources, *others, **options):
            by_size = sorted(sources, key=os.path.getsize, reverse=True)
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                made = dict(
                    zip(
                        by_size,
                        pool.map(lambda each: compile_all([each], *others, **options), by_size),
                        strict=True,
                    )
                )
            return [each for source in sources for each in made[source]]

        self.compiler.compile = compile_each
        try:
            yield
        finally:
            self.compiler.compile = compile_all

    def build_library(self, package):
        """Compiles what changed of the core, links it and the player, and puts headers beside."""
        native = runpy.run_path("native/build_ffi.py")
        sources, headers = native["library_sources"](), native["files"]("**/*.h")
        player = native["sources_of"](("player",)) if native["PLAYER"] else []

        def compile_one(source):
            standard = native["STANDARD"] if source.endswith(".c") else []
            (made,) = self.compiler.object_filenames([source], output_dir=self.build_temp)
            if self.force or newer_group([source, *headers, "native/build_ffi.py"], made):
                self.compiler.compile(
                    [source],
                    output_dir=self.build_temp,
                    include_dirs=native["INCLUDE"],
                    extra_postargs=[*native["COMPILE"], *standard],
                )
            return made

        self.compiler.src_extensions = [*self.compiler.src_extensions, ".m"]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            made = list(pool.map(compile_one, [*sources, *player]))
        objects, program = made[: len(sources)], made[len(sources) :]
        library = package / "lib" / native["LIBRARY"]
        if self.force or newer_group(objects, str(library)):
            self.compiler.link_shared_object(
                objects,
                str(library),
                libraries=native["LIBRARY_NEEDS"],
                extra_postargs=native["LIBRARY_LINK"],
            )
        if program and (
            self.force or newer_group(program, str(package / "lib" / native["PLAYER"]))
        ):
            self.compiler.link_executable(
                program,
                native["PLAYER"],
                output_dir=str(package / "lib"),
                libraries=native["LIBRARY_NEEDS"],
                extra_postargs=["-pthread"],
            )
        for header in native["installed_headers"]():
            (package / "include").mkdir(parents=True, exist_ok=True)
            shutil.copy2(header, package / "include")

    def copy_extensions_to_source(self):
        """For an editable install: the library and the headers go where the extension goes."""
        super().copy_extensions_to_source()
        for ext in self.extensions:
            made = Path(self.build_lib, *ext.name.split(".")[:-1])
            for beside in BESIDE_THE_EXTENSION:
                if (made / beside).is_dir():
                    place = Path("tlmem", beside)
                    shutil.copytree(
                        made / beside, place, dirs_exist_ok=True, copy_function=replace_file
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
    cmdclass={"build_ext": BuildNative, "build_py": BuildWithStartUp},
)
