"""Train a tagger, decoding utterances with Viterbi back pointers and a beam search that carries score histories."""
import time
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(5)
TAGS = 48


def viterbi(em, trans):
    score, back, alphas = em[0], [], []
    for t in range(1, em.shape[0]):
        table = score[:, :, None] + trans + em[t][:, None, :]
        score, arg = table.max(1)
        back.append(arg)
        alphas.append(table)
    path = [score.argmax(-1)]
    for arg in reversed(back):
        path.append(arg.gather(1, path[-1][:, None])[:, 0])
    margin = torch.stack([a.std() for a in alphas]).mean()
    return torch.stack(path[::-1]), margin


def beam(em, trans, width=16):
    beams = [(0.0, [], em[0, 0])]
    for t in range(em.shape[0]):
        cand = []
        for s, hist, vec in beams:
            nxt = vec + em[t, 0] if not hist else trans[hist[-1]] + em[t, 0]
            val, ix = nxt.topk(4)
            cand += [(s + v, hist + [i], nxt) for v, i in zip(val.tolist(), ix.tolist())]
        beams = sorted(cand, key=lambda c: -c[0])[:width]
    return beams[0]


def main():
    net = nn.GRU(20, 64)
    out = nn.Linear(64, TAGS)
    trans = nn.Parameter(torch.randn(TAGS, TAGS) * 0.1)
    opt = torch.optim.SGD([*net.parameters(), *out.parameters(), trans], 0.05)
    total = 0.0
    for utt in range(100):
        T = 40 + utt % 30
        x = torch.randn(T, 8, 20)
        gold = (x[..., :4].sum(-1) * 5).long().clamp(-20, 20) % TAGS
        em = out(net(x)[0])
        loss = nn.functional.cross_entropy(em.flatten(0, 1), gold.flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            path, margin = viterbi(em.detach(), trans)
            time.sleep(0.02)
            best = beam(em.detach()[:25], trans)
        total += best[0] + margin.item() + (path == gold).float().mean().item()
        time.sleep(0.02)
    print("score", total)


if __name__ == "__main__":
    main()
