"""What the numbers show together and no single one says; see :mod:`sidecar.observe.rules`."""
