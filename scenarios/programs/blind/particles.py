"""Particles in a box: neighbours by cells, velocities, a trajectory that is kept and compacted."""

import numpy as np

rng = np.random.default_rng(5)
place, speed = rng.random((30_000, 3)), rng.standard_normal((30_000, 3)) * 1e-3
saved: list[np.ndarray] = []
for step in range(160):
    cell = (place * 16).astype(np.int64)
    key = (cell[:, 0] * 16 + cell[:, 1]) * 16 + cell[:, 2]
    order = np.argsort(key, kind="stable")
    starts = np.searchsorted(key[order], np.arange(16**3 + 1))
    force = np.zeros_like(place)
    for at in range(0, 16**3, 64):
        mine = order[starts[at] : starts[at + 1]]
        apart = place[mine, None] - place[None, mine]
        near = (apart**2).sum(-1) + 1e-3
        force[mine] += (apart / near[..., None]).sum(1)
    speed += 1e-7 * force
    place = (place + speed) % 1.0
    saved.append(place.astype(np.float32))
    if len(saved) == 40:
        saved = [np.concatenate(saved)[:: 1 + step // 40].copy()]
print(sum(each.nbytes for each in saved))
