"""What other labs read: KTAP, JUnit, kcidb's JSON, LAVA's job definitions."""
