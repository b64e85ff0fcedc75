"""Pure rules of the store: names, versions, manifest, frozen pools, checkpoints."""
