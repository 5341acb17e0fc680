"""`python -m mull` is the same as `mull`."""

from mull.start import main

if __name__ == "__main__":
    raise SystemExit(main())
