"""What holds for every test: nothing is judged by how long it took on a machine that others use."""

import os

from hypothesis import settings

if not os.environ.get("CI"):  # there Hypothesis loads its own `ci` profile: no deadline, no chance
    settings.register_profile("patient", deadline=None)
    settings.load_profile("patient")
