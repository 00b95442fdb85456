"""A real browser without a window: Chromium, driven through a pair of pipes.

Covers: opening a page, running JavaScript in it, clicks, what it logs, pictures of it. Speaks the
DevTools protocol, messages of JSON with a zero byte at their end. Does not cover: other browsers.
"""

import base64
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
START = """\
import fcntl, os, sys
ends = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 20) for number in sys.argv[1:3]]
for number, end in enumerate(ends, 3):
    os.dup2(end, number)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Puts the pipes where the browser looks for them."""


def find() -> str | None:
    """The browser of this machine; None when there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One browser with one page; ``with Browser(profile) as browser``."""

    def __init__(self, profile: Path, dark: bool = False) -> None:
        ours, theirs = os.pipe(), os.pipe()
        program = find()
        assert program is not None, f"none of {NAMES} is on this machine"
        self._process = subprocess.Popen(
            [sys.executable, "-c", START, str(ours[0]), str(theirs[1]), program,
             "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
             "--disable-background-networking", f"--user-data-dir={profile}",
             "--window-size=1200,900", "about:blank"],
            pass_fds=(ours[0], theirs[1]), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(ours[0])
        os.close(theirs[1])
        self._out, self._in = os.fdopen(ours[1], "wb", 0), os.fdopen(theirs[0], "rb")
        self._waiting = b""
        self._number = 0
        self._session: str | None = None
        self.logged: list[str] = []
        """Errors of the page: exceptions, console errors, and what its policy refused."""
        self.requests: list[str] = []
        """Every address that the page asked for, its own included."""
        page = self.command("Target.createTarget", url="about:blank")["targetId"]
        attached = self.command("Target.attachToTarget", targetId=page, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.command(f"{domain}.enable")
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.command("Emulation.setEmulatedMedia", features=features)

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._out.close()
        self._in.close()

    def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the DevTools protocol and its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._out.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]

    def open(self, path: Path, fragment: str = "") -> None:
        """Opens a file and waits until it has been loaded."""
        self._loaded = False
        self.command("Page.navigate", url=path.resolve().as_uri() + fragment)
        while not self._loaded:
            self._next()

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page, promises waited for."""
        result = self.command(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def click(self, selector: str) -> None:
        """Clicks with the mouse on the middle of the first element that matches."""
        x, y = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect();"
            "return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.command(
                "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1
            )

    def picture(self, out: Path, whole: bool = True) -> None:
        """Writes a PNG of the page."""
        made = self.command("Page.captureScreenshot", captureBeyondViewport=whole)
        out.write_bytes(base64.b64decode(made["data"]))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._waiting:
            more = os.read(self._in.fileno(), 1 << 20)
            assert more, "the browser ended"
            self._waiting += more
        line, _, self._waiting = self._waiting.partition(b"\0")
        message = json.loads(line)
        self._note(message)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        method, about = message.get("method"), message.get("params", {})
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Runtime.exceptionThrown":
            self.logged.append(json.dumps(about["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning"):
            self.logged.append(json.dumps(about["args"]))
        elif method == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.logged.append(about["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
