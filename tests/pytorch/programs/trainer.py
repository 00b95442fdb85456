"""A Trainer with callbacks, accumulation, warm-up, evaluation and checkpoints."""

import os
import tempfile
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset
from truth import take


@dataclass
class Arguments:
    folder: str
    epochs: int = 2
    batch: int = 8
    accumulate: int = 2
    rate: float = 1e-3
    warmup: int = 3
    clip: float = 1.0
    evaluate_every: int = 4


@dataclass
class State:
    step: int = 0
    history: list[dict[str, float]] = field(default_factory=list)


class Callback:
    def on_log(self, state: State, values: dict[str, float]) -> None: ...


class Printer(Callback):
    def on_log(self, state: State, values: dict[str, float]) -> None:
        print(state.step, " ".join(f"{name} {value:.9g}" for name, value in values.items()))


class Pairs(Dataset[dict[str, torch.Tensor]]):
    """Sequences and the same sequences backwards."""

    def __init__(self, count: int, seed: int) -> None:
        chance = torch.Generator().manual_seed(seed)
        self.tokens = torch.randint(100, (count, 24), generator=chance)

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, number: int) -> dict[str, torch.Tensor]:
        tokens = self.tokens[number]
        return {"input_ids": tokens, "labels": tokens.flip(0)}


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(100, 96)
        self.position = nn.Parameter(torch.randn(24, 96) * 0.02)
        layer = nn.TransformerEncoderLayer(96, 4, 384, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(96, 100)

    def forward(
        self, input_ids: torch.Tensor, labels: torch.Tensor | None = None
    ) -> dict[str, torch.Tensor]:
        logits = self.head(self.encoder(self.embedding(input_ids) + self.position))
        answer = {"logits": logits}
        if labels is not None:
            answer["loss"] = F.cross_entropy(
                logits.flatten(0, 1), labels.flatten(), label_smoothing=0.1
            )
        return answer


class Trainer:
    def __init__(
        self,
        model: nn.Module,
        arguments: Arguments,
        train: Dataset[Any],
        test: Dataset[Any],
        callbacks: list[Callback],
    ) -> None:
        self.model, self.arguments, self.state = model, arguments, State()
        self.train_data, self.test_data, self.callbacks = train, test, callbacks
        self.create_optimizer()

    def create_optimizer(self) -> None:
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=self.arguments.rate)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: min(1.0, (step + 1) / self.arguments.warmup)
        )

    def take(self, moment: str, inputs: dict[str, torch.Tensor], loss: torch.Tensor) -> None:
        if self.state.step == 5:
            take(
                moment,
                self.state.step,
                modules=[self.model],
                optimizers=[self.optimizer],
                roots=[loss],
                inputs=inputs.values(),
            )

    def training_step(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        self.model.train()
        loss = self.model(**inputs)["loss"] / self.arguments.accumulate
        self.take("forward", inputs, loss)
        loss.backward()
        self.take("backward", inputs, loss)
        return loss.detach()

    def train(self) -> State:
        arguments = self.arguments
        running = torch.zeros(())
        for epoch in range(arguments.epochs):
            chance = torch.Generator().manual_seed(epoch)
            loader = DataLoader(
                self.train_data, arguments.batch, shuffle=True, generator=chance, drop_last=True
            )
            for number, inputs in enumerate(loader):
                loss = self.training_step(inputs)
                running += loss
                if (number + 1) % arguments.accumulate:
                    continue
                nn.utils.clip_grad_norm_(self.model.parameters(), arguments.clip)
                self.optimizer.step()
                self.take("step", inputs, loss)
                self.scheduler.step()
                self.optimizer.zero_grad()
                self.state.step += 1
                self.log({"loss": running.item(), "rate": self.scheduler.get_last_lr()[0]})
                running.zero_()
                if self.state.step % arguments.evaluate_every == 0:
                    self.log(self.evaluate())
                    self.save()
        return self.state

    @torch.no_grad()
    def evaluate(self) -> dict[str, float]:
        self.model.eval()
        losses, right, count = [], 0, 0
        for inputs in DataLoader(self.test_data, self.arguments.batch):
            answer = self.model(**inputs)
            losses.append(answer["loss"].item())
            right += int((answer["logits"].argmax(-1) == inputs["labels"]).sum())
            count += inputs["labels"].numel()
        return {"eval_loss": sum(losses) / len(losses), "eval_right": right / count}

    def log(self, values: dict[str, float]) -> None:
        self.state.history.append(values)
        for callback in self.callbacks:
            callback.on_log(self.state, values)

    def save(self) -> None:
        whole = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": self.state.step,
        }
        torch.save(whole, os.path.join(self.arguments.folder, "checkpoint.pt"))


def main() -> None:
    torch.manual_seed(13)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        arguments = Arguments(folder)
        trainer = Trainer(Model(), arguments, Pairs(64, 0), Pairs(16, 1), [Printer()])
        trainer.train()
        restored = torch.load(os.path.join(folder, "checkpoint.pt"), weights_only=True)
        trainer.model.load_state_dict(restored["model"])
        print(f"restored step {restored['step']}: {trainer.evaluate()['eval_loss']:.9g}")


if __name__ == "__main__":
    main()
