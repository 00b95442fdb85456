"""Masked arrays and where()."""

import numpy as np

rng = np.random.default_rng(0)
months = []
for n in range(36):
    t = rng.standard_normal((400, 600)) * 10 + 15
    m = np.ma.masked_where((t < 0) | (t > 35), t)
    anomaly = m - m.mean(axis=0)
    filled = anomaly.filled(np.nan)
    z = (m - m.mean()) / m.std()
    months.append(np.ma.array(z.data.astype(np.float32), mask=np.ma.getmaskarray(z)))
    if n >= 11:
        year = np.ma.stack(months[-12:])
        clim = year.mean(axis=0)
        spread = np.ma.median(year[:, ::4, ::4], axis=0)
print(clim.shape)
