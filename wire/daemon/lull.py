"""When something is done that can wait until it is quiet, and does not wait for ever."""


class Lull:
    """A moment of quiet after what stirs, or the end of patience.

    Args:
        quiet: seconds without anything that stirs.
        most: seconds after the first that stirred.

    Attributes:
        due: when it is time, in the clock of who stirs; infinite where nothing is to be done.
    """

    def __init__(self, quiet: float, most: float) -> None:
        self.due = float("inf")
        self._quiet = quiet
        self._most = most
        self._until = float("inf")

    def stirred(self, now: float) -> None:
        """Put it off for a moment."""
        self._until = min(self._until, now + self._most)
        self.due = min(now + self._quiet, self._until)

    def over(self) -> None:
        """Note that it is being done."""
        self.due = self._until = float("inf")
