"""The ``harmonica`` command: one module a subcommand.

A subcommand's module has ``add_arguments(parser)`` and ``run(args) -> int``; it is
imported only when it is asked for.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

SUBCOMMANDS = {
    "compare": "compare explanation methods at equal model evaluations",
    "explain": "explain every row of a large file, chunk by chunk",
}
# `harmonica_compare.compare` is the function for notebooks.
_MODULES = {"compare": "compare_command"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``harmonica``; return the exit code."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    try:
        args = _parsed(arguments)
    except KeyboardInterrupt:  # while what the command needs is imported
        print("harmonica: stopped", file=sys.stderr)
        return 130
    code: int = args.run(args)
    return code


def _parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="harmonica",
        description="Consistent removal-based explanations with a stated error.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name, text in SUBCOMMANDS.items():
        command = commands.add_parser(name, help=text, description=text)
        if name in arguments[:1]:
            module = importlib.import_module(
                f"harmonica_compare.{_MODULES.get(name, name)}"
            )
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
