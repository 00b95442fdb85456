"""Compile text templates to Python functions, keep the newest ones in an LRU and render pages."""
import functools
import random
import re
import time

rng = random.Random(91)
VAR = re.compile(r"\{\{(\w+)\}\}")


def template_source(n):
    r = random.Random(n)
    body = "\n".join(
        f"<li class='c{r.randrange(100)}'>{{{{name}}}} item {r.randrange(10**6)} for {{{{user}}}}</li>"
        for _ in range(40)
    )
    return f"<ul id='{n}'>{body}</ul>"


@functools.lru_cache(maxsize=220)
def compile_template(n):
    parts = VAR.split(template_source(n))
    lines = ["def render(ctx):", "    out = []"]
    for i, part in enumerate(parts):
        lines.append(f"    out.append({part!r})" if i % 2 == 0 else f"    out.append(str(ctx[{part!r}]))")
    lines.append("    return ''.join(out)")
    ns = {}
    exec(compile("\n".join(lines), f"<template {n}>", "exec"), ns)
    return ns.pop("render")


def main():
    size = 0
    for tick in range(160):
        for _ in range(6):
            n = int(3000 ** rng.random())
            page = compile_template(n)({"name": f"n{tick}", "user": "u%d" % rng.randrange(99)})
            size += len(page)
        time.sleep(0.039)
    print(size, compile_template.cache_info())


main()
