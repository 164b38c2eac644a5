"""The pure domain: words, states, schedules, policies. No I/O and no driver is imported here."""
