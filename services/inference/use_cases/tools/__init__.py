"""The agent's tools (AGT-2), one file each."""
