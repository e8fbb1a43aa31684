"""Alarms sent abroad: to Alertmanagers, signed webhooks and an OpenTelemetry receiver.

:mod:`~sidecar.export.notify.routes` is the door. Each output has a thread, an outbox of what still
matters and a sender, so that one that hangs delays neither the others nor the pipeline.
"""
