"""Dynamic quantization: linear layers and an LSTM with 8-bit weights answer like those before."""

import warnings

import torch
from torch import nn
from truth import take


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(500, 96)
        self.lstm = nn.LSTM(96, 192, batch_first=True)
        self.fc1, self.fc2 = nn.Linear(192, 384), nn.Linear(384, 500)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        states, _ = self.lstm(self.embedding(tokens))
        return self.fc2(torch.relu(self.fc1(states[:, -1])))


def main() -> None:
    torch.manual_seed(11)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    model = Reader().eval()
    tokens = torch.randint(500, (16, 20))
    with torch.inference_mode():
        before = model(tokens)
    take("forward", 0, modules=[model], inputs=[tokens])
    small = torch.ao.quantization.quantize_dynamic(model, {nn.Linear, nn.LSTM}, dtype=torch.qint8)
    del model
    for step in range(4):
        with torch.inference_mode():
            after = small(tokens)
        print(f"step {step} furthest apart {(after - before).abs().max().item():.9g}")
        if step == 2:
            take("forward", step, modules=[small], inputs=[tokens])


if __name__ == "__main__":
    main()
