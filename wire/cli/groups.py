"""Groups of commands, as their help shows them: no line is cut, and a misspelt name brings the right one."""

from collections.abc import Sequence

import click


class Group(click.Group):
    """Commands with a whole sentence each, under headings where there are some."""

    headings: Sequence[tuple[str, Sequence[str]]] = ()

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the first sentence of each command's help, in as many lines as it takes."""
        for heading, names in self.headings or (("Commands", self.list_commands(ctx)),):
            found = [(name, self.get_command(ctx, name)) for name in names]
            rows = [(name, one.get_short_help_str(1000)) for name, one in found if one is not None and not one.hidden]
            with formatter.section(heading):
                formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; raises UsageError that names what is spelt like it."""
        name = args[0]
        if not name.startswith("-") and not ctx.resilient_parsing and self.get_command(ctx, name) is None:
            from difflib import get_close_matches  # only for who mistyped

            close = get_close_matches(name, self.list_commands(ctx), n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise click.UsageError(f"No such command {name[:40]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)
