"""`python -m mull` is the same as `mull`."""

from mull.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
