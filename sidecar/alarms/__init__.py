"""From verdicts to alarms: what is pending, firing and resolved, and the file that remembers it.

:mod:`~sidecar.alarms.book` decides, :mod:`~sidecar.alarms.store` keeps,
:mod:`~sidecar.alarms.writer` stands between the two so that a slow disk delays nobody.
"""
