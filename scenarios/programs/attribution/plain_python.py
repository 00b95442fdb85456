"""Python objects only: dicts, lists, texts and numbers are kept."""


def main() -> None:
    kept, total = [], 0
    for step in range(100_000):
        kept.append({"step": step, "name": f"row {step}", "values": [step, step / 3, str(step)]})
        total += sum(number * number for number in range(100))
    print(len(kept), total)


if __name__ == "__main__":
    main()
