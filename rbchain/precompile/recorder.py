"""A program that reads a pickled function, calls it in plain Python, and writes the signatures of its drivers."""

import pickle
import sys
import traceback

from .signatures import recorded


def main() -> None:
    """Read the function from the input, and write the pickled signatures to the output."""
    results, sys.stdout = sys.stdout, sys.stderr  # the pipe is for the signatures alone
    try:
        signatures = recorded(pickle.loads(sys.stdin.buffer.read()))
    except Exception as error:  # of any function
        sys.exit("".join(traceback.format_exception_only(error)).strip())
    results.buffer.write(pickle.dumps(signatures))


if __name__ == "__main__":
    main()
