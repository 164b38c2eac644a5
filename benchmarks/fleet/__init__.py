"""A model of installations of many hosts, fitted to figures of `make bench`, and checked against them.

`machine` is simulated time and cores; `path` the loops of the services on it; `measured` reads a report,
`costs` and `model` fit it; `check` compares the model on one machine with the report; `arrivals`, `queue` and
`sizing` apply it to large loads; `tables` prints. Start reading in `path`.
"""
