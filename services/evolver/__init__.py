"""The evolver: finds out why answers were wrong and proposes safe edits of the skills."""
