"""How much the tests that draw their own cases try: twenty times as much in the profile `deep`."""

import os

SCALE = 20 if os.environ.get("HYPOTHESIS_PROFILE") == "deep" else 1
