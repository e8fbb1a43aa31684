"""Which request of a client became which requests to an engine, and what the gateway added.

:mod:`sidecar.legs.pairing` decides, :mod:`sidecar.legs.overhead` counts; docs/joining-legs.md.
"""
