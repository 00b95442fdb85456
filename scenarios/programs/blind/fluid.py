"""A fluid on a grid: advection by interpolation, pressure by Jacobi steps, frames kept as bytes."""

import numpy as np

size = 320
y, x = np.mgrid[0:size, 0:size].astype(np.float32)
u = np.sin(y / 20) * 2
v = np.cos(x / 25) * 2
dye = ((x - 160) ** 2 + (y - 160) ** 2 < 2_500).astype(np.float32)
frames = []


def moved(field: np.ndarray) -> np.ndarray:
    px, py = np.clip(x - u, 0, size - 1.001), np.clip(y - v, 0, size - 1.001)
    ix, iy = px.astype(np.int32), py.astype(np.int32)
    fx, fy = px - ix, py - iy
    top = field[iy, ix] * (1 - fx) + field[iy, ix + 1] * fx
    below = field[iy + 1, ix] * (1 - fx) + field[iy + 1, ix + 1] * fx
    return top * (1 - fy) + below * fy


for step in range(40):
    u, v, dye = moved(u), moved(v), moved(dye)
    flow = np.gradient(u, axis=1) + np.gradient(v, axis=0)
    pressure = np.zeros_like(flow)
    for _ in range(15):
        neighbours = sum(np.roll(pressure, s, a) for s, a in ((1, 0), (-1, 0), (1, 1), (-1, 1)))
        pressure = (neighbours - flow) / 4
    u = u - np.gradient(pressure, axis=1)
    v = v - np.gradient(pressure, axis=0)
    if step % 2 == 0:
        frames.append((np.clip(dye, 0, 1) * 255).astype(np.uint8).tobytes())
print(len(frames), round(float(dye.sum())))
