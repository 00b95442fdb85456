import io
import time
import numpy as np

journal = io.BytesIO()
end = time.monotonic() + 3.2
i = 0
while time.monotonic() < end:
    np.save(journal, np.random.default_rng(i).random(4_000))
    i += 1
    time.sleep(0.004)
print(journal.tell() > 0)
