"""Search positions of a small sliding-tile game with a transposition table bounded by an always-replace scheme."""
import random
import time

import numpy as np

SLOTS = 600
SIDE = 5


class Table:
    def __init__(self, slots):
        self.slots = slots
        self.rows = {}
        self.replaced = 0

    def probe(self, key, depth):
        row = self.rows.get(key % self.slots)
        if row is not None and row[0] == key and row[1] >= depth:
            return row[2]
        return None

    def store(self, key, depth, score, policy):
        slot = key % self.slots
        if slot in self.rows:
            self.replaced += 1
        self.rows[slot] = (key, depth, score, policy)


class Game:
    def __init__(self, seed):
        rnd = random.Random(seed)
        self.zobrist = [[rnd.getrandbits(60) for _ in range(SIDE * SIDE)] for _ in range(SIDE * SIDE)]
        board = list(range(SIDE * SIDE))
        rnd.shuffle(board)
        self.board = np.array(board).reshape(SIDE, SIDE)

    def key(self):
        k = 0
        for i, v in enumerate(self.board.ravel().tolist()):
            k ^= self.zobrist[i][v]
        return k


def shift(board, move):
    line = move % SIDE
    if move < SIDE:
        board[line] = np.roll(board[line], 1)
    else:
        board[:, line] = np.roll(board[:, line], 1)


def unshift(board, move):
    line = move % SIDE
    if move < SIDE:
        board[line] = np.roll(board[line], -1)
    else:
        board[:, line] = np.roll(board[:, line], -1)


GOAL = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)


def search(game, depth, table, counter):
    counter[0] += 1
    if counter[0] % 60 == 0:
        time.sleep(0.01)
    if depth == 0:
        return -int(np.abs(game.board - GOAL).sum())
    key = game.key()
    seen = table.probe(key, depth)
    if seen is not None:
        return seen
    policy = np.zeros((8, 2 * SIDE, 8), dtype=np.float32)
    best = -(10 ** 9)
    for move in range(2 * SIDE):
        shift(game.board, move)
        score = search(game, depth - 1, table, counter)
        unshift(game.board, move)
        policy[:, move] = score
        best = max(best, score)
    table.store(key, depth, best, policy)
    return best


def main():
    table = Table(SLOTS)
    counter = [0]
    scores = []
    game = Game(3)
    rnd = random.Random(0)
    for turn in range(22):
        scores.append(search(game, 3, table, counter))
        shift(game.board, rnd.randrange(2 * SIDE))
        shift(game.board, rnd.randrange(2 * SIDE))
        if turn % 8 == 7:
            game = Game(turn)
    print("nodes", counter[0], "slots", len(table.rows), "replaced", table.replaced, "best", max(scores))


if __name__ == "__main__":
    main()
