"""Masked autoencoder pretraining, then finetuning, then an evaluation pass which collects and concatenates predictions."""
import time
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(3)


class Encoder(nn.Module):
    def __init__(self, d=96):
        super().__init__()
        self.embed = nn.Linear(16, d)
        self.pos = nn.Parameter(torch.zeros(16, d))
        self.blocks = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(d, 4, 192, dropout=0.0, batch_first=True), 2, enable_nested_tensor=False)

    def forward(self, patches, keep=None):
        h = self.embed(patches) + self.pos
        if keep is not None:
            h = torch.gather(h, 1, keep[..., None].expand(-1, -1, h.shape[-1]))
        return self.blocks(h)


def make(n):
    label = torch.randint(0, 10, (n,))
    img = torch.randn(n, 16, 16) * 0.5 + torch.sin(label.float())[:, None, None]
    return img, label


def pretrain(enc, steps):
    dec = nn.Linear(96, 256)
    opt = torch.optim.AdamW([*enc.parameters(), *dec.parameters()], 1e-3)
    for _ in range(steps):
        x, _y = make(48)
        keep = torch.rand(48, 16).argsort(1)[:, :6]
        rec = dec(enc(x, keep).mean(1)).view(48, 16, 16)
        loss = (rec - x).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(0.012)
    return loss.item()


def finetune(enc, head, steps):
    opt = torch.optim.AdamW([*enc.parameters(), *head.parameters()], 5e-4)
    for _ in range(steps):
        x, y = make(48)
        loss = nn.functional.cross_entropy(head(enc(x).mean(1)), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(0.012)
    return loss.item()


@torch.no_grad()
def evaluate(enc, head, batches):
    enc.eval()
    probs, feats, labels = [], [], []
    for _ in range(batches):
        x, y = make(64)
        h = enc(x)
        feats.append(h)
        probs.append(head(h.mean(1)).softmax(-1))
        labels.append(y)
        time.sleep(0.012)
    feats, probs, labels = torch.cat(feats), torch.cat(probs), torch.cat(labels)
    acc = (probs.argmax(1) == labels).float().mean().item()
    return acc, feats.std().item()


def main():
    enc, head = Encoder(), nn.Linear(96, 10)
    a = pretrain(enc, 130)
    b = finetune(enc, head, 110)
    print(a, b, *evaluate(enc, head, 140))


if __name__ == "__main__":
    main()
