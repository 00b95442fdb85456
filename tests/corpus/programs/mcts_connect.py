"""Play connect-four with Monte-Carlo tree search, reusing the chosen subtree and pruning the rest after every move."""
import math
import random
import time

import numpy as np

ROWS, COLS = 6, 7


class Node:
    __slots__ = ("board", "player", "children", "visits", "value", "prior")

    def __init__(self, board, player):
        self.board = board
        self.player = player
        self.children = {}
        self.visits = 0
        self.value = 0.0
        self.prior = np.full((16, COLS), 1.0 / COLS)


def play(board, col, player):
    column = board[:, col]
    row = int((column == 0).sum()) - 1
    if row < 0:
        return None, None
    fresh = board.copy()
    fresh[row, col] = player
    return fresh, row


def wins(board, row, col):
    player = board[row, col]
    for dr, dc in ((0, 1), (1, 0), (1, 1), (1, -1)):
        n = 1
        for s in (1, -1):
            r, c = row + s * dr, col + s * dc
            while 0 <= r < ROWS and 0 <= c < COLS and board[r, c] == player:
                n += 1
                r, c = r + s * dr, c + s * dc
        if n >= 4:
            return True
    return False


def descend(node, rnd, depth=0):
    node.visits += 1
    legal = [c for c in range(COLS) if node.board[0, c] == 0]
    if not legal or depth > 18:
        return 0.0
    untried = [c for c in legal if c not in node.children]
    if untried:
        col = rnd.choice(untried)
        board, row = play(node.board, col, node.player)
        node.children[col] = Node(board, -node.player)
        node.children[col].visits = 1
        result = 1.0 if wins(board, row, col) else rnd.uniform(-0.3, 0.3)
        node.children[col].value = result
    else:
        col = max(
            legal,
            key=lambda c: node.children[c].value / node.children[c].visits
            + 1.2 * math.sqrt(math.log(node.visits) / node.children[c].visits),
        )
        result = -descend(node.children[col], rnd, depth + 1)
        node.children[col].value += result
    return result


def main():
    rnd = random.Random(7)
    games = 0
    results = []
    for games in range(3):
        root = Node(np.zeros((ROWS, COLS), dtype=np.int8), 1)
        winner = 0
        for move in range(14):
            for sim in range(260):
                descend(root, rnd)
                if sim % 20 == 0:
                    time.sleep(0.006)
            if not root.children:
                break
            col = max(root.children, key=lambda c: root.children[c].visits)
            board, row = play(root.board, col, root.player)
            if wins(board, row, col):
                winner = root.player
                break
            root = root.children[col]
        results.append(winner)
    print("games", games + 1, "winners", results)


if __name__ == "__main__":
    main()
