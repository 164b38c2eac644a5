"""What workflows cost: throughput, latency of a hop, statements of a pass, idle cost, and the plain path."""
