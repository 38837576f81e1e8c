"""The slow checks of make test: each series' patches, builds, and guests."""
