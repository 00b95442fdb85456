"""Train a small transformer language model with a curriculum whose sequence length grows during the run."""
import time
import torch
from torch import nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(0)
VOCAB = 200


class TinyLM(nn.Module):
    def __init__(self, d=64):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, d)
        self.pos = nn.Embedding(512, d)
        layer = nn.TransformerEncoderLayer(d, 4, 128, dropout=0.0, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(d, VOCAB)

    def forward(self, x):
        n = x.shape[1]
        h = self.tok(x) + self.pos(torch.arange(n))
        mask = nn.Transformer.generate_square_subsequent_mask(n)
        return self.head(self.enc(h, mask=mask))


def length_at(step, total):
    return 16 + int(144 * step / total)


def main():
    corpus = (torch.arange(60000) * 7 % 113 + torch.randint(0, 20, (60000,))) % VOCAB
    model = TinyLM()
    opt = torch.optim.AdamW(model.parameters(), 1e-3)
    total = 200
    losses = []
    for step in range(total):
        n = length_at(step, total)
        at = torch.randint(0, len(corpus) - n - 1, (8,))
        batch = torch.stack([corpus[i:i + n + 1] for i in at.tolist()])
        logits = model(batch[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, VOCAB), batch[:, 1:].reshape(-1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
        time.sleep(0.015)
    print(f"first {losses[0]:.3f} last {losses[-1]:.3f}")


if __name__ == "__main__":
    main()
