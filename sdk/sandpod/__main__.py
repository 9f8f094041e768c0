"""`python -m sandpod` is the command line tool."""

import sys

from sandpod.cli import main

sys.exit(main())
