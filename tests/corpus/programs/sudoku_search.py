"""Solve a stream of shuffled sudoku puzzles by constraint propagation and backtracking."""
import random
import time

rng = random.Random(2024)
DIGITS = "123456789"
ROWS = "ABCDEFGHI"
CELLS = [r + c for r in ROWS for c in DIGITS]
UNITS = (
    [[r + c for c in DIGITS] for r in ROWS]
    + [[r + c for r in ROWS] for c in DIGITS]
    + [[r + c for r in rs for c in cs] for rs in ("ABC", "DEF", "GHI") for cs in ("123", "456", "789")]
)
PEERS = {s: {p for u in UNITS if s in u for p in u} - {s} for s in CELLS}


def make_puzzle():
    perm = list(DIGITS)
    rng.shuffle(perm)
    grid = {}
    for i, r in enumerate(ROWS):
        for j, c in enumerate(DIGITS):
            grid[r + c] = perm[(i * 3 + i // 3 + j) % 9]
    for s in rng.sample(CELLS, 54):
        grid[s] = "."
    return grid


def assign(values, s, d, nogoods):
    todo = [(s, d)]
    while todo:
        s, d = todo.pop()
        if d not in values[s]:
            nogoods.add((s, d, "".join(values[c] for c in CELLS)))
            return False
        values[s] = d
        for p in PEERS[s]:
            if d in values[p]:
                rest = values[p].replace(d, "")
                if not rest:
                    nogoods.add((p, d, "".join(values[c] for c in CELLS)))
                    return False
                values[p] = rest
                if len(rest) == 1:
                    todo.append((p, rest))
    return True


def solve(values, nogoods, trail):
    open_cells = [(len(v), s) for s, v in values.items() if len(v) > 1]
    if not open_cells:
        return values
    _, s = min(open_cells)
    for d in values[s]:
        trail.append(values)
        attempt = dict(values)
        if assign(attempt, s, d, nogoods):
            done = solve(attempt, nogoods, trail)
            if done:
                return done
        trail.pop()
    return None


def main():
    solved = dead = 0
    for _ in range(170):
        puzzle = make_puzzle()
        values = dict.fromkeys(CELLS, DIGITS)
        nogoods, trail = set(), []
        ok = all(assign(values, s, d, nogoods) for s, d in puzzle.items() if d != ".")
        if ok and solve(values, nogoods, trail):
            solved += 1
        dead += len(nogoods)
        time.sleep(0.041)
    print("solved", solved, "dead ends", dead)


main()
