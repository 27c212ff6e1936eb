"""The program's door: `wire`, `git-wire`, and `python -m wire` for units and hooks, which name the interpreter.

It imports nothing of wire before `main`, so that what comes can be loaded without the collector looking for garbage
among thousands of objects that stay: that alone is a twentieth of a `wire send`. The command line turns it on again.
"""

import gc


def main() -> None:
    """Run the command line and exit."""
    gc.disable()
    from wire.cli import main as run

    run()


if __name__ == "__main__":
    main()
