"""Contact sheets: uploads come in bursts; between the bursts the worker waits."""
import io
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from PIL import Image, ImageFilter

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0


def fake_upload(seed, side):
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 255, size=(side // 8, side // 8, 3), dtype=np.uint8)
    buf = io.BytesIO()
    Image.fromarray(small).resize((side, side)).save(buf, "JPEG", quality=70)
    return buf.getvalue()


def decode(blob):
    img = Image.open(io.BytesIO(blob)).convert("RGB").filter(ImageFilter.BoxBlur(1))
    arr = np.asarray(img, dtype=np.float32) / 255.0
    arr = (arr - arr.min()) / max(np.ptp(arr), 1e-6)
    return arr[::2, ::2].copy()


def contact_sheet(tiles, side):
    sheet = np.zeros((3 * side, 4 * side, 3), np.float32)
    for i, tile in enumerate(tiles):
        r, c = divmod(i, 4)
        h, w = tile.shape[:2]
        sheet[r * side:r * side + h, c * side:c * side + w] = tile
    return Image.fromarray((sheet * 255).astype(np.uint8))


def main():
    uploads = [fake_upload(i, 256) for i in range(12)]
    start = time.perf_counter()
    sheets = 0
    with ThreadPoolExecutor(2) as pool:
        burst = 0
        while time.perf_counter() - start < T:
            burst_end = min(T, (burst + 0.45) * T / 8)
            while time.perf_counter() - start < burst_end:
                tiles = list(pool.map(decode, uploads))
                out = io.BytesIO()
                contact_sheet(tiles, 128).save(out, "PNG", compress_level=1)
                sheets += 1
            tiles = None
            burst += 1
            while time.perf_counter() - start < min(T, burst * T / 8):
                time.sleep(0.005)
    print("sheets made:", sheets > 0)


main()
