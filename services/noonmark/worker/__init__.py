"""The worker: takes runs from the lanes, executes them, records what happened, then commits offsets.

May import: `attempts`, `handlers`, `service`, `store`, `kafka`, `telemetry`, `core`. Start with `main.py`,
then `engine/engine.py`.
"""
