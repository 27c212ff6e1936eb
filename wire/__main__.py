"""`python -m wire`: the command line, for who must name the interpreter, such as units and hooks."""

from wire.cli import main

main()
