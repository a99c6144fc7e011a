"""What generates files of this repository; `python -m tests.generated` (`make docs`) calls it."""
