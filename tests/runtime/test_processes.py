"""Forks, threads, generators and ends of the interpreter in the middle of everything.

Each program runs in a process of its own, must end by itself, and says nothing on standard error.
"""

import subprocess
import sys
import textwrap

import pytest

BEGIN = """
import asyncio, gc, os, signal, sys, threading, time
import numpy as np
import tlmem
from tlmem._native import ffi, lib

def live():
    gc.collect()
    return int(lib.tlm_objects_alive(ffi.NULL, 0))

class Thing:
    handle, escaped = 1, False
    def __init__(self, free=lambda: None):
        self.on_free = free
    def mark_escaped(self):
        self.escaped = True
    def free(self):
        self.on_free()

def work():
    with tlmem.scope("work"):
        for _ in range(20):
            x = tlmem.ones(10) + 1
            tlmem.struct([x])
            x.numpy()

work()
"""

FORK_IN_SCOPES = """
with tlmem.scope("outer"):
    a = tlmem.ones(3)
    with tlmem.scope("inner"):
        b = a + 1
        child = os.fork()
        if child == 0:
            assert tlmem.scope_depth() == 2 and b.tolist() == [2, 2, 2]
            c = a + 2
    assert tlmem.scope_depth() == 1 and not b.alive
if child == 0:
    os._exit(7 if live() == 0 else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert live() == 0
"""

FORK_BESIDE_THREADS = """
going = True
def run():
    while going:
        work()
threads = [threading.Thread(target=run) for _ in range(4)]
for each in threads:
    each.start()
for _ in range(40):
    child = os.fork()
    if child == 0:
        signal.alarm(300)
        work()
        pool = tlmem.TensorPool()
        pool.release(tlmem.ones(3))
        assert pool.acquire(3).tolist() == [1, 1, 1]
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
going = False
for each in threads:
    each.join()
assert live() == 0
"""

END_WITH_EVERYTHING_OPEN = """
tlmem.scope("open").__enter__()
a = tlmem.ones(3)
array = a[1:].numpy()
memory = memoryview(a)
tlmem.function_enter(3)
looked = tlmem.get_buffer(0, 100).tensor(5)
pools = [tlmem.TensorPool(), tlmem.TensorPool(weak=True)]
for pool in pools:
    pool.release(tlmem.ones(4, scope=None))
tlmem.register_parameter("p", tlmem.struct({"a": a, "b": [a]}))
passed = tlmem.TensorScope("passed")
inside = tlmem.zeros(4, scope=passed)
taken = tlmem.from_numpy(np.ones(3))
tlmem.register(Thing())
lent = np.from_dlpack(tlmem.ones(3))
"""

END_WITH_THREADS_AT_WORK = """
def run():
    while True:
        with tlmem.scope("thread"):
            work()
            tlmem.register(Thing(work))
            tlmem.from_numpy(np.ones(3))
for _ in range(6):
    threading.Thread(target=run, daemon=True).start()
time.sleep(0.2)
"""

THREAD_ENDS_IN_SCOPES = """
freed, kept = [], []
def run():
    scope = tlmem.scope("thread").__enter__()
    kept.append((scope, tlmem.ones(3)))
    tlmem.function_enter(2)
    tlmem.get_buffer(1, 10)
    tlmem.register(Thing(lambda: freed.append(1)))
    tlmem.from_numpy(np.ones(3))
for _ in range(10):
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
until = time.monotonic() + 300  # join returns a little before the thread has ended
while (len(freed) < 10 or live()) and time.monotonic() < until:
    time.sleep(0.01)
assert len(freed) == 10 and live() == 0
for scope, tensor in kept:
    try:
        tensor + 1
        raise SystemExit("the tensor is alive")
    except tlmem.UseAfterFree as error:
        assert "scope 'thread'" in str(error)
    try:
        scope.__exit__(None, None, None)
        raise SystemExit("the scope was left twice")
    except tlmem.UnbalancedScope:
        pass
"""

GENERATORS = """
def generate():
    with tlmem.scope("generator"):
        x = tlmem.ones(3)
        yield x
        yield x + 1
one = generate()
x = next(one)
assert tlmem.scope_depth() == 1
del one
assert tlmem.scope_depth() == 0 and not x.alive
one, other = generate(), generate()
next(one), next(other)
for each in (one, other):  # the first ends the second one's scope with its own, and both say so
    try:
        each.close()
        raise SystemExit("nobody noticed")
    except tlmem.UnbalancedScope:
        pass
assert tlmem.scope_depth() == 0
x = None
assert live() == 0
"""

CANCELLED_TASKS = """
async def task(number):
    with tlmem.scope("task"):
        x = tlmem.ones(3)
        try:
            with tlmem.scope("inner"):
                await asyncio.sleep(0.001 * (number % 3))
                if number % 10 == 9:
                    raise ValueError
                await asyncio.sleep(10)
        finally:
            assert tlmem.scope_depth() == 1
            await asyncio.sleep(0)
            assert x.tolist() == [1, 1, 1]
async def main():
    with tlmem.scope("main"):
        mine = tlmem.ones(3)
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(50):
                    group.create_task(task(number))
        except* ValueError:
            pass
        tasks = [asyncio.create_task(task(number)) for number in range(9)]
        await asyncio.sleep(0.002)
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert mine.alive and tlmem.scope_depth() == 1
asyncio.run(main())
assert tlmem.scope_depth() == 0 and live() == 0
"""

LOOPS_IN_THREADS = """
async def task(number):
    with tlmem.scope("task"):
        x = tlmem.ones(3)
        await asyncio.sleep(0.001 * (number % 4))
        depth, y = await asyncio.to_thread(lambda: (tlmem.scope_depth(), tlmem.ones(2)))
        assert depth == 0 and y.alive and x.alive and tlmem.scope_depth() == 1
async def main():
    await asyncio.gather(*(task(number) for number in range(20)))
threads = [threading.Thread(target=lambda: asyncio.run(main())) for _ in range(4)]
for each in threads:
    each.start()
for each in threads:
    each.join()
assert live() == 0
"""

RECORDED_IN_THE_MIDDLE = """
import tempfile
with tempfile.TemporaryDirectory() as folder:
    path = folder + "/middle.tlm"
    with tlmem.scope("outer"):
        a = tlmem.ones(3)
        with tlmem.Recorder(path):
            b = a + 1
            a.escape()
            half = tlmem.scope("half").__enter__()
            c = tlmem.ones(5)
        assert c.alive
        half.__exit__(None, None, None)
        d = a + 2
    found = tlmem.read(path)
    assert found.problems == [] and found.complete, found.problems
    assert len(found.misuses) == 0 and len(found.objects) >= 2
    del a
    assert live() == 0
"""

FREED_WHILE_COMPUTED = """
big = [tlmem.ones(200_000) for _ in range(2)]
going = True
def free_and_make():
    while going:
        for place in range(2):
            old, big[place] = big[place], tlmem.ones(200_000)
            try:
                old.free()
            except tlmem.StillHeld:
                pass
thread = threading.Thread(target=free_and_make)
thread.start()
for _ in range(300):
    try:
        total = (big[0] + big[1]).sum().item()
        assert total == 400_000, total
    except tlmem.UseAfterFree:
        pass
going = False
thread.join()
big.clear()
old = None
assert live() == 0
"""

PROGRAMS = {
    name.lower().replace("_", " "): text
    for name, text in globals().items()
    if name.isupper() and name != "BEGIN" and isinstance(text, str)
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_ends_as_it_should(name: str) -> None:
    code = BEGIN + textwrap.dedent(PROGRAMS[name])
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-W", "ignore::DeprecationWarning", "-c", code],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
