"""Filters loaded as plug-ins with importlib; each plug-in registers what it was given for 'undo'."""
import importlib.util
import os
import sys
import tempfile
import textwrap
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
REGISTRY = """
    filters = {}
    _undo = []

    def register(name):
        def deco(fn):
            filters[name] = fn
            return fn
        return deco

    def remember(name, data):
        _undo.append((name, data))
"""
PLUGIN = """
    import filter_registry as reg

    @reg.register({name!r})
    def run(img):
        {remember}
        return {expr}
"""


def load(tmp, name, source):
    path = os.path.join(tmp, name + ".py")
    with open(path, "w") as f:
        f.write(textwrap.dedent(source))
    spec = importlib.util.spec_from_file_location(name, path)
    mod = importlib.util.module_from_spec(spec)
    sys.modules[name] = mod
    spec.loader.exec_module(mod)
    return mod


def acquire(rng, side=64):
    img = rng.poisson(20, size=(side, side)).astype(np.float64)
    img[side // 3, side // 2] += 200
    return img


def main():
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as tmp:
        reg = load(tmp, "filter_registry", REGISTRY)
        load(tmp, "blur", PLUGIN.format(name="blur", remember="reg.remember('blur', img)",
                                        expr="(img + img.T) / 2"))
        load(tmp, "scale", PLUGIN.format(name="scale", remember="pass", expr="img / img.max()"))
        start = time.perf_counter()
        means = []
        while time.perf_counter() - start < T:
            img = acquire(rng)
            for fn in reg.filters.values():
                img = fn(img)
            means.append(float(img.mean()))
            time.sleep(0.003)
    print("filters", sorted(reg.filters), "images", len(means) > 0)


main()
