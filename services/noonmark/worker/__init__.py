"""The worker: takes runs from the lanes, executes them, records what happened, then commits offsets."""
