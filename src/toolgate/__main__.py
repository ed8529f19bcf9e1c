"""`python -m toolgate`."""

from toolgate.cli.main import main

if __name__ == "__main__":
    main()
