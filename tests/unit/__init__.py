"""Unit tests of what the checks share."""
