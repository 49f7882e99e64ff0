"""A headless Chromium, spoken to over two pipes by its own protocol: no driver is needed."""

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
SECONDS = 60
INSTALL = "Chromium is needed to look at pages: apt-get install chromium fonts-dejavu-core"


class Browser:
    """One tab of a browser."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read, self._rest, self._count = write, read, b"", 0
        self._session = ""
        self.said: list[str] = []
        """What the console and the page's errors say."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the answer to a command."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def open(self, path: Path, width: int, height: int = 900) -> Self:
        """Show a file in a window of this width."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.call("Page.navigate", url=path.resolve().as_uri())
        while self._next().get("method") != "Page.loadEventFired":
            pass
        return self

    def value(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def picture(self, **clip: float) -> str:
        """Return a picture of the page as PNG in base64, of all of it or of a part."""
        part = {"clip": {"scale": 1, **clip}} if clip else {}
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True, **part)
        data: str = shot["data"]
        return data

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            read = os.read(self._read, 1 << 16)
            assert read, "the browser has ended"
            self._rest += read
        message, _, self._rest = self._rest.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        self._note(answer)
        return answer

    def _note(self, answer: dict[str, Any]) -> None:
        told = answer.get("params", {})
        match answer.get("method"):
            case "Runtime.exceptionThrown":
                self.said.append(str(told["exceptionDetails"]))
            case "Runtime.consoleAPICalled":
                self.said.append(str(told["args"]))
            case "Log.entryAdded":
                self.said.append(str(told["entry"]["text"]))
            case "Network.requestWillBeSent":
                url = told["request"]["url"]
                if not url.startswith(("file:", "data:")):
                    self.said.append(f"asked for {url}")


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """Yield a new browser, which knows nothing of any other."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    assert program is not None, INSTALL
    to_read, write = os.pipe()
    read, to_write = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        # The browser reads from descriptor 3 and writes to descriptor 4.
        command = f'exec "$@" 3<&{to_read} 4>&{to_write}'
        process = subprocess.Popen(
            ["bash", "-c", command, "bash", program, *FLAGS, f"--user-data-dir={folder}"],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        try:
            yield Browser(write, read)
        finally:
            process.kill()
            process.wait(SECONDS)
            os.close(write)
            os.close(read)
