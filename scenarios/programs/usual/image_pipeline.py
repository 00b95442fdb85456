"""Image pipeline: load, gray, blur, edges, thumbnails kept."""

import numpy as np

rng = np.random.default_rng(0)
thumbs = []
for _n in range(60):
    h, w = rng.integers(900, 1600, 2)
    image = rng.integers(0, 256, (h, w, 3), dtype=np.uint8)
    gray = image.astype(np.float32) @ np.array([0.299, 0.587, 0.114], np.float32)
    blur = gray.copy()
    for k in (1, 2, 3):
        blur[k:] += gray[:-k]
        blur[:-k] += gray[k:]
    blur /= 7
    gx = np.diff(blur, axis=1, prepend=0)
    gy = np.diff(blur, axis=0, prepend=0)
    edges = np.hypot(gx, gy)
    mask = edges > np.percentile(edges, 95)
    hist, _ = np.histogram(gray, 256)
    thumbs.append((image[::8, ::8].copy(), edges[::4, ::4].copy(), mask.sum(), hist))
print(len(thumbs))
