"""A convolutional VAE: encoder, reparameterized sample, decoder, two losses."""

import torch
import torch.nn.functional as F
from torch import nn
from truth import take


class VAE(nn.Module):
    def __init__(self, latent: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 16, 4, 2, 1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 4, 2, 1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(32 * 7 * 7, 256),
            nn.ReLU(),
        )
        self.mean, self.log_variance = nn.Linear(256, latent), nn.Linear(256, latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, 256),
            nn.ReLU(),
            nn.Linear(256, 32 * 7 * 7),
            nn.ReLU(),
            nn.Unflatten(1, (32, 7, 7)),
            nn.ConvTranspose2d(32, 16, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(16, 1, 4, 2, 1),
        )

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        h = self.encoder(x)
        mean, log_variance = self.mean(h), self.log_variance(h)
        z = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        return self.decoder(z), mean, log_variance


def elbo(x: torch.Tensor, answer: tuple[torch.Tensor, torch.Tensor, torch.Tensor]) -> torch.Tensor:
    logits, mean, log_variance = answer
    likelihood = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    divergence = -0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).sum()
    return (likelihood + divergence) / len(x)


def main() -> None:
    torch.manual_seed(5)
    torch.set_num_threads(1)
    digits = (torch.rand(128, 1, 28, 28) > 0.8).float()
    model = VAE(16)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    of = {"modules": [model], "optimizers": [optimizer]}
    step = 0
    for epoch in range(2):
        for x in digits[torch.randperm(128)].split(32):
            optimizer.zero_grad()
            loss = elbo(x, model(x))
            if step == 5:
                take("forward", step, roots=[loss], inputs=[x, digits], **of)
            loss.backward()
            if step == 5:
                take("backward", step, roots=[loss], inputs=[x, digits], **of)
            optimizer.step()
            if step == 5:
                take("step", step, roots=[loss], inputs=[x, digits], **of)
            step += 1
        print(f"epoch {epoch} loss {loss.item():.9g}")
    with torch.no_grad():
        print(f"mean of samples {model.decoder(torch.randn(8, 16)).sigmoid().mean().item():.9g}")


if __name__ == "__main__":
    main()
