"""Two stretches of recorded latencies beside each other: which one is slower, and is that known?

Periods, replicas or stored runs become :mod:`~sidecar.diff.sides`; :mod:`~sidecar.diff.comparing`
compares two of them and says only what their data carry.
"""
