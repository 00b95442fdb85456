"""Reload a rules plugin from disk with importlib whenever its source is regenerated."""
import importlib
import pathlib
import random
import sys
import tempfile
import time

sys.dont_write_bytecode = True
rng = random.Random(18)


def write_plugin(path, version):
    rules = ",\n    ".join(
        repr((f"rule-{version}-{i}", rng.randrange(1000), f"message {rng.getrandbits(80):x}")) for i in range(1200)
    )
    funcs = "\n".join(
        f"def check_{i}(x):\n    return x % {rng.randrange(2, 99)} == {rng.randrange(0, 2)}\n" for i in range(25)
    )
    path.write_text(f"VERSION = {version}\nRULES = [\n    {rules}\n]\n{funcs}\nCHECKS = [v for k, v in list(globals().items()) if k.startswith('check_')]\n")


def main():
    hits = 0
    with tempfile.TemporaryDirectory() as d:
        path = pathlib.Path(d) / "rules_plugin.py"
        sys.path.insert(0, d)
        write_plugin(path, 0)
        import rules_plugin as plugin
        for version in range(1, 81):
            write_plugin(path, version)
            importlib.invalidate_caches()
            plugin = importlib.reload(plugin)
            for x in range(300):
                hits += sum(c(x) for c in plugin.CHECKS)
            time.sleep(0.075)
        sys.path.remove(d)
    print(plugin.VERSION, hits)


main()
