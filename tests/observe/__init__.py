"""Tests of sidecar.observe."""
