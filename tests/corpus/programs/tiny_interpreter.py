"""Tokenize, parse, constant-fold and interpret generated programs of a toy language."""
import random
import re
import time

rng = random.Random(8)
TOKEN = re.compile(r"\s*(?:(\d+)|([a-z]\w*)|(.))")


def generate(n):
    lines = []
    names = ["a"]
    lines.append("a = 7")
    for i in range(n):
        expr = " ".join(
            f"{rng.choice(names)} {rng.choice('+-*')} ({rng.randrange(99)} + {rng.choice(names)}) -"
            for _ in range(3)
        ) + f" {rng.randrange(9)}"
        name = f"v{i % 60}"
        lines.append(f"{name} = {expr}")
        if name not in names:
            names.append(name)
    return "\n".join(lines)


class Node:
    __slots__ = ("op", "left", "right")

    def __init__(self, op, left=None, right=None):
        self.op, self.left, self.right = op, left, right


class Parser:
    def __init__(self, text):
        self.toks = [m.group(1) or m.group(2) or m.group(3) for m in TOKEN.finditer(text) if m.group().strip()]
        self.pos = 0

    def peek(self):
        return self.toks[self.pos] if self.pos < len(self.toks) else None

    def next(self):
        self.pos += 1
        return self.toks[self.pos - 1]

    def expr(self):
        node = self.term()
        while self.peek() in ("+", "-"):
            node = Node(self.next(), node, self.term())
        return node

    def term(self):
        node = self.atom()
        while self.peek() == "*":
            node = Node(self.next(), node, self.atom())
        return node

    def atom(self):
        t = self.next()
        if t == "(":
            node = self.expr()
            self.next()
            return node
        return Node(int(t) if t.isdigit() else t)


def fold(node):
    if node.left is None:
        return node
    a, b = fold(node.left), fold(node.right)
    if isinstance(a.op, int) and isinstance(b.op, int) and a.left is None and b.left is None:
        return Node(run(Node(node.op, a, b), {}))
    return Node(node.op, a, b)


def run(node, env):
    if node.left is None:
        return node.op if isinstance(node.op, int) else env.get(node.op, 1)
    a, b = run(node.left, env), run(node.right, env)
    r = a + b if node.op == "+" else a - b if node.op == "-" else a * b
    return r % 1000003


def main():
    checksum = 0
    for job in range(38):
        size = 200 + 2200 * ((job // 5) % 3)
        source = generate(size // 2)
        program = []
        for n, line in enumerate(source.splitlines()):
            name, _, rhs = line.partition("=")
            program.append((name.strip(), fold(Parser(rhs).expr())))
            if n % 100 == 99:
                time.sleep(0.006)
        env = {}
        for _ in range(2):
            for name, tree in program:
                env[name] = run(tree, env)
        checksum ^= sum(env.values())
        time.sleep(0.07)
    print("checksum", checksum)


main()
