"""The inference service: the governed model (INF) and the agent that answers questions with it (AGT)."""
