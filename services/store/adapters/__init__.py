"""The ports of the store on real files and databases."""
