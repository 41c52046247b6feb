"""``python -m harmonica_compare`` is the ``harmonica`` command."""

import sys

from harmonica_compare.cli import main

sys.exit(main())
