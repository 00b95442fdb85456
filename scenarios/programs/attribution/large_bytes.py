"""Large bytes and texts: pickles, joined texts and byte arrays that grow."""

import pickle


def main() -> None:
    kept: list[object] = []
    growing = bytearray()
    rows = [{"number": number, "text": "x" * (number % 50)} for number in range(2000)]
    for step in range(600):
        kept.append(pickle.dumps([rows, step]))
        kept.append(",".join(str(number) for number in range(4000)))
        growing += bytes(20_000)
    print(len(kept), len(growing))


if __name__ == "__main__":
    main()
