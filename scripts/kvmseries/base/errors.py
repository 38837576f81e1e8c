"""The one exception that reaches the user as a line instead of a traceback."""


class Fail(Exception):
    """What is wrong and what to do about it, in one line.

    main() prints it as `series: error: ...` and exits with `status` (1, or 2 for a mistake in
    the arguments).
    """

    def __init__(self, message: str, status: int = 1):
        super().__init__(" ".join(str(message).split()))
        self.status = status


class Usage(Fail):
    """A mistake in the arguments: unknown series, vCPU count 0, ..."""

    def __init__(self, message: str):
        super().__init__(message, status=2)
