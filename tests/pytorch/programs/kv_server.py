"""A server that generates text for sessions, each with a KV cache that goes when it is over."""

import torch
import torch.nn.functional as F
from torch import nn
from truth import take

Cache = list[tuple[torch.Tensor, torch.Tensor]]


class Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(
        self, x: torch.Tensor, past: tuple[torch.Tensor, torch.Tensor] | None
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.ln1(x)).chunk(3, dim=-1)
        q, k, v = (
            t.reshape(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for t in (q, k, v)
        )
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.ln2(x)))), (k, v)


class Decoder(nn.Module):
    def __init__(self, vocabulary: int, width: int, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Layer(width, 4) for _ in range(layers))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens: torch.Tensor, past: Cache | None) -> tuple[torch.Tensor, Cache]:
        x = self.embedding(tokens)
        present: Cache = []
        for number, layer in enumerate(self.layers):
            x, pair = layer(x, past[number] if past else None)
            present.append(pair)
        return self.head(x[:, -1]), present


class Server:
    def __init__(self, model: Decoder) -> None:
        self.model = model
        self.caches: dict[int, Cache] = {}
        self.texts: dict[int, list[int]] = {}

    @torch.inference_mode()
    def start(self, session: int, prompt: torch.Tensor) -> None:
        logits, self.caches[session] = self.model(prompt, None)
        self.texts[session] = [int(logits.argmax())]

    @torch.inference_mode()
    def advance(self, session: int) -> None:
        last = torch.tensor([[self.texts[session][-1]]])
        logits, self.caches[session] = self.model(last, self.caches[session])
        self.texts[session].append(int(logits.argmax()))

    def end(self, session: int) -> list[int]:
        del self.caches[session]
        return self.texts.pop(session)


def main() -> None:
    torch.manual_seed(7)
    torch.set_num_threads(1)
    server = Server(Decoder(512, 128, 3).eval())
    waiting = [(number, torch.randint(512, (1, 16 + 4 * number))) for number in range(12)]
    length = {number: 10 + 3 * number for number, _ in waiting}
    rounds = 0
    while waiting or server.texts:
        while waiting and len(server.texts) < 4:
            server.start(*waiting.pop(0))
        for session in list(server.texts):
            server.advance(session)
            if len(server.texts[session]) == length[session]:
                print(f"session {session}: {server.end(session)[-5:]}")
        if rounds in (8, 30):
            take("forward", rounds, modules=[server.model])
        rounds += 1
    print(f"{rounds} rounds, {len(server.caches)} caches")


if __name__ == "__main__":
    main()
