"""The gate: is a candidate skill better than the current one?"""
