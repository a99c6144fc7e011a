"""`python -m rsched` is `rsched`."""

from rsched.cli.entry import main

if __name__ == "__main__":
    main()
