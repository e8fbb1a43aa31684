"""What was measured before there was a sidecar: read, calibrated, remembered, and judged again.

:mod:`~sidecar.history.sources` turns Prometheus, access logs, tables and a running sidecar's page
into one ordered stream of records; calibration, backfill and replay take that stream.
"""
