"""The benchmark: what noonmark does on this machine, measured on a stack of its own."""
