"""The privileged process: loads kernel programs, drains their rings, sends fixed-size frames.

It opens no network connection and reads no configuration file; what to watch comes from the
sidecar over the Unix socket. Imports only the standard library to stay small.
"""
