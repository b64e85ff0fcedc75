"""The ports on real technology: HTTP upstreams, Redis, a disk cache, the store."""
