"""Tests of what is sent abroad, against real servers on loopback."""
