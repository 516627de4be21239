"""Runs pieces of the project's work, each in a fork of a process that has imported everything, to be killed there.

Reads a line for each piece: the file its words go to, which it is of :data:`tests.build.endless.ACTIONS`, and its
arguments. Answers with the fork's process number, and with its exit code when it has ended. Forks lead sessions of
their own, so that what they start is found.
"""

from __future__ import annotations

import os
import sys


def serve() -> None:
    # Workers import this file, and need none of it.
    from tests.build.endless import ACTIONS

    for line in sys.stdin:
        log, action, *arguments = line.split()
        child = os.fork()
        if child == 0:
            os.setsid()
            said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            for stream in (1, 2):
                os.dup2(said, stream)
            ACTIONS[action](*arguments)
            return
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    serve()
