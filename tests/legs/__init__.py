"""Tests of sidecar.legs."""
