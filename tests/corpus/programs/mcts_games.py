"""Play Connect-Four-like games by Monte Carlo tree search, keeping only the chosen subtree."""
import math
import random
import time

import numpy as np

rng = random.Random(21)
COLS, ROWS = 6, 5
PRIOR = np.exp(-np.abs(np.arange(COLS) - (COLS - 1) / 2)).tolist()


class Node:
    def __init__(self, board, player):
        self.board, self.player = board, player
        self.kids = {}
        self.n, self.w = 0, 0.0

    def moves(self):
        return [c for c in range(COLS) if len(self.board[c]) < ROWS]


def play(board, c, player):
    return board[:c] + (board[c] + (player,),) + board[c + 1:]


def score(board):
    s = 0
    for c in range(COLS - 1):
        for a, b in zip(board[c], board[c + 1]):
            s += a if a == b else 0
    return s


def simulate(root):
    node = root
    path = [root]
    while True:
        ms = node.moves()
        if not ms:
            break
        fresh = [c for c in ms if c not in node.kids]
        if fresh:
            c = rng.choice(fresh)
            node.kids[c] = Node(play(node.board, c, node.player), -node.player)
            node = node.kids[c]
            path.append(node)
            break
        log_n = math.log(node.n + 1)
        node = max((node.kids[c] for c in ms),
                   key=lambda k: k.w / k.n + math.sqrt(2 * log_n / k.n))
        path.append(node)
    v = math.tanh(score(node.board) / 3 + rng.gauss(0, 0.3))
    for node in path:
        node.n += 1
        node.w += -v * node.player


def main():
    finished = moves = 0
    root = Node(((),) * COLS, 1)
    for tick in range(150):
        for _ in range(420):
            simulate(root)
        if not root.moves():
            finished += 1
            root = Node(((),) * COLS, 1)
        else:
            best = max(root.kids, key=lambda c: (root.kids[c].n, PRIOR[c]))
            root = root.kids[best]
            moves += 1
        time.sleep(0.042)
    print(finished, moves)


main()
