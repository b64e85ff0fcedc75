"""The schema's history: each database is brought to the newest version when it is opened."""
