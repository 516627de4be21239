"""A site engine in a process that ends when the one that started it does, run as a program of its own.

Its arguments are the engine's module and the engine's own; its input is a pipe that the starting process holds open.
"""

from __future__ import annotations

import os
import runpy
import sys
import threading


def _leave_with_parent() -> None:
    # Nothing is ever written to the pipe: it ends when its other side is closed, by whatever ends that process.
    os.read(sys.stdin.fileno(), 1)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
