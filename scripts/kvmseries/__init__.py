"""The tool behind scripts/series; scripts/README.md shows the modules."""
