"""``python -m pindown`` is the command ``pindown``."""

from pindown.cli.main import main

if __name__ == "__main__":
    main()
