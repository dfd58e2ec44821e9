"""`python -m warmq`: the command."""

import os
import sys

from warmq._command import binary
from warmq.errors import WarmqError


def main() -> int:
    try:
        path = binary()
    except WarmqError as error:
        print(f"warmq: {error}", file=sys.stderr)
        return 2
    os.execv(path, [path, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
