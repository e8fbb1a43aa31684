"""The process that evaluates: it remembers the latencies of days and compares hours with them.

:mod:`~sidecar.analyst.slots` is its memory, in the same file as the alarms where there is one.
"""
