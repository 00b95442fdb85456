import time
import numpy as np

NAMES = [
    f"{what}_{of}"
    for what in ("mean", "spread", "trend", "noise", "share", "total")
    for of in ("rain", "wind", "sun", "frost", "fog", "hail", "snow", "dew", "heat", "storm")
]
# every cell makes one result under a name of its own, as notebooks do
for number, name in enumerate(NAMES):
    source = f"{name} = np.cumsum(np.random.rand(6_000))\n{name}.sum()"
    exec(compile(source, f"/tmp/ipykernel_77/{number * 7919}.py", "exec"), globals())
    time.sleep(0.05)
