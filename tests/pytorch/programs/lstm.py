"""An LSTM classifies sentences of different lengths as a packed sequence."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from truth import take


class Classifier(nn.Module):
    def __init__(self, vocabulary: int, width: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width, padding_idx=0)
        self.lstm = nn.LSTM(width, hidden, num_layers=2, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(0.1)
        self.out = nn.Linear(2 * hidden, classes)

    def forward(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        packed = pack_padded_sequence(
            self.embedding(tokens), lengths, batch_first=True, enforce_sorted=False
        )
        states, _ = self.lstm(packed)
        padded, _ = pad_packed_sequence(states, batch_first=True)
        mask = torch.arange(padded.shape[1])[None] < lengths[:, None]
        mean = (padded * mask[..., None]).sum(1) / lengths[:, None]
        return self.out(self.dropout(mean))


def sentences(count: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Padded tokens, lengths and a label that the first token decides."""
    lengths = torch.randint(5, 30, (count,))
    rows = [torch.randint(1, 1000, (int(length),)) for length in lengths]
    labels = torch.tensor([int(row[0]) % 4 for row in rows])
    return pad_sequence(rows, batch_first=True), lengths, labels


def main() -> None:
    torch.manual_seed(3)
    torch.set_num_threads(1)
    model = Classifier(1000, 64, 96, 4)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    of = {"modules": [model], "optimizers": [optimizer]}
    for step in range(8):
        tokens, lengths, labels = sentences(16)
        inputs = [tokens, lengths, labels]
        optimizer.zero_grad()
        loss = F.cross_entropy(model(tokens, lengths), labels)
        if step == 4:
            take("forward", step, roots=[loss], inputs=inputs, **of)
        loss.backward()
        if step == 4:
            take("backward", step, roots=[loss], inputs=inputs, **of)
        optimizer.step()
        if step == 4:
            take("step", step, roots=[loss], inputs=inputs, **of)
        print(f"step {step} loss {loss.item():.9g}")


if __name__ == "__main__":
    main()
