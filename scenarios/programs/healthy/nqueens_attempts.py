"""Four boards one after another, each from its own numbers: no attempt leaves anything behind."""

from tlmem.scenarios.programs.healthy.nqueens import solve

OUTCOME = "stable"
ATTEMPTS = 4


def main() -> None:
    ends = [solve(seed) for seed in range(ATTEMPTS)]
    solved = sum(epoch < 1999 for epoch, _ in ends)
    print(f"{solved} of {ATTEMPTS} solved, best loss {min(loss for _, loss in ends):.4f}")


if __name__ == "__main__":
    main()
