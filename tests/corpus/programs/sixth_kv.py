# LLM server: KV cache per session grows per token by concat, freed when the session ends; session lengths are long (ramp-up ~ 4 s)
import time, random
import torch
torch.manual_seed(10); random.seed(10); torch.set_num_threads(1)
H, D = 8, 64
sessions = {}; nid = 0; served = 0; t0 = time.monotonic()
q = torch.randn(1, H, 1, D)
for step in range(500):
    if step % 12 == 0:
        n0 = random.randint(50, 400)
        sessions[nid] = {"k": torch.randn(1, H, n0, D), "v": torch.randn(1, H, n0, D), "left": random.randint(150, 350)}
        nid += 1
    for sid in list(sessions):
        s = sessions[sid]
        if step % 8 == sid % 8:
            s["k"] = torch.cat([s["k"], torch.randn(1, H, 8, D)], 2)
            s["v"] = torch.cat([s["v"], torch.randn(1, H, 8, D)], 2)
            att = torch.softmax(q @ s["k"].transpose(-1, -2), -1) @ s["v"]
        s["left"] -= 1
        if s["left"] <= 0:
            del sessions[sid]; served += 1
    time.sleep(max(0, t0 + step * 0.016 - time.monotonic()))
print(served, len(sessions))
