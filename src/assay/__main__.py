"""``python -m assay`` is the same as ``assay``."""

import sys

from assay.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
