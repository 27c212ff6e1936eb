"""The program's door: `wire`, `git-wire`, and `python -m wire` for units and hooks, which name the interpreter.

It imports nothing of wire before `main`, so that what comes can be loaded without the collector looking for garbage
among thousands of objects that stay: that alone is a twentieth of a `wire send`. The command line turns it on again.

A runtime's hook runs at every prompt and nearly always for nothing. It has a door of its own, which asks whether
anything changed before the command line is loaded. So has the hook of a host, for which somebody's push waits.
"""

import gc
import sys


def main() -> None:
    """Run the command line and exit."""
    gc.disable()
    if sys.argv[1:2] == ["hook"] and len(sys.argv) == 4 and not any(word.startswith("-") for word in sys.argv):
        _hook(sys.argv[2:])
    if sys.argv[1:4] == ["hooks", "run", "pre-receive"]:
        _pre_receive(sys.argv[4:])
    from wire.cli import main as run

    run()


def _hook(words: list[str]) -> None:
    """Answer a runtime's hook and exit, whatever happens with a status that does not block the session."""
    import os

    status = 0
    try:
        stdin = sys.stdin.buffer.read() if sys.stdin is not None else b""
        from wire.hooks.quick import settled

        said = settled(words, os.environ, os.getcwd(), stdin)
        if said is not None:
            os.write(1, said.encode("ascii"))
        else:
            from wire.cli.hook import answer_hook

            status = answer_hook(words, stdin)
    except Exception as error:  # noqa: BLE001  # any status but 0 disturbs somebody's session
        if sys.stderr is not None:
            sys.stderr.write(f"wire: the hook did nothing: {type(error).__name__}\n")
    os._exit(status)


def _pre_receive(words: list[str]) -> None:
    """Judge a push and exit; returns for words that the command line is to explain."""
    import os

    status, said = 1, ""
    try:
        from wire.hooks.prereceive import answer, rules_of

        rules = rules_of(words)
        if rules is None:
            return
        status, said = answer(os.environ, os.getcwd(), sys.stdin.buffer.read(), rules)
    except Exception as error:  # noqa: BLE001  # whatever it is, the push is refused, and no traceback goes to a stranger
        said = f"wire: refused, since this push cannot be judged: {type(error).__name__}\n"
    os.write(2, said.encode("utf-8", "backslashreplace"))
    os._exit(status)


if __name__ == "__main__":
    main()
