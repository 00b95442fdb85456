"""A training run that resumes from a checkpoint, or goes on with copies: roles of its peak.

Each program prints what its tensors have, taken inside it when most is alive.
"""

import json

import pytest
from support import programs

from tlmem.analysis.peak.explained import Explained, explain
from tlmem.recording.reader import read

pytest.importorskip("torch", reason="needs PyTorch: pip install tlmem[torch]")
pytestmark = pytest.mark.xdist_group("resume")  # recorded once, not in each worker

HEAD = """
import copy, io, json
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


def build():
    net = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256))
    return net, torch.optim.Adam(net.parameters(), 1e-3)


def train(net, opt, steps):
    for _ in range(steps):
        x = torch.randn(64, 256)
        loss = (net(x) - x).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()


net, opt = build()
train(net, opt, 5)
"""
RESUME = """
file = io.BytesIO()
torch.save({"net": net.state_dict(), "opt": opt.state_dict()}, file)
del net, opt
file.seek(0)
checkpoint = torch.load(file)
net, opt = build()
net.load_state_dict(checkpoint["net"])
opt.load_state_dict(checkpoint["opt"])
del checkpoint
"""
ASSIGN = """
state = {name: tensor.clone() for name, tensor in net.state_dict().items()}
net.load_state_dict(state, assign=True)
opt = torch.optim.Adam(net.parameters())
del state
"""
COPY = """
both = copy.deepcopy((net, opt))
net, opt = both
del both
"""
TAIL = """
train(net, opt, 20)
big = torch.ones(6_000_000)


def truth():
    states = [tensor for values in opt.state.values() for tensor in values.values()]
    weights = dict(net.named_parameters())
    large = {name: weight for name, weight in weights.items() if weight.nbytes >= 16_384}
    return {
        "weights": sum(weight.nbytes for weight in weights.values()),
        "gradients": sum(weight.grad.nbytes for weight in weights.values()),
        "optimizer state": sum(tensor.nbytes for tensor in states),
        "kept by Python": big.nbytes,
        "modules": {name.split(".")[0]: weight.nbytes for name, weight in large.items()},
    }


print(json.dumps(truth()))
"""


@pytest.fixture(scope="module", params=[RESUME, ASSIGN, COPY], ids=["resume", "assign", "copy"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """The truth of a program, and its peak."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "train.py").write_text(HEAD + request.param + TAIL)
    done = programs.recorded(["train.py"], folder, options=("-q", "-o", "a.tlm"))
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout), explain(read(folder / "a.tlm"))


def test_roles_are_those_of_the_truth(run: tuple[dict, Explained]) -> None:
    truth, found = run
    roles = {each.role: each.bytes for each in found.roles}

    assert sum(roles.values()) == found.bytes == found.peak_bytes
    for role in ("weights", "gradients", "optimizer state"):
        assert roles[role] == truth[role], role
    # The last loss stays in a variable as well.
    assert roles["kept by Python"] - truth["kept by Python"] < 100


def test_weights_are_of_their_modules(run: tuple[dict, Explained]) -> None:
    truth, found = run
    weights = next(each for each in found.roles if each.role == "weights")

    assert {path[-1]: size for path, size in weights.modules} == truth["modules"]
