"""Everything the sidecar gives away: Prometheus exposition, JSON, and the status page.

Reads immutable snapshots only; nothing here can delay, or be delayed by, a collector.
"""
