import io
import sys
import time
import numpy as np
from PIL import Image

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


def jpeg(k):
    a = np.zeros((150, 200, 3), np.uint8)
    a[:, :, k % 3] = np.arange(200, dtype=np.uint8)
    b = io.BytesIO()
    Image.fromarray(a).save(b, "JPEG")
    return b.getvalue()


files = [jpeg(k) for k in range(6)]
gallery = []
for i in range(int(T * 75)):
    im = Image.open(io.BytesIO(files[i % 6]))
    im.load()
    im = im.resize((160, 120))
    gallery.append(im)
    time.sleep(0.011)
print(len(gallery), gallery[-1].size)
