"""What every other package needs: failures, programs, paths, files, steps with time left, Debian's packages."""
