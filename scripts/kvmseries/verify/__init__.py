"""What must hold of a series: patches, builds, selftests, litmus tests, hours of stress."""
