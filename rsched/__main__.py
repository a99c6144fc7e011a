"""`python -m rsched` is `rsched`."""

from rsched.cli.main import main

if __name__ == "__main__":
    main()
