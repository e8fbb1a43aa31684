"""The embedded bench: a real engine, a real gateway and an honest load on one small machine.

Everything runs on 127.0.0.1 and in processes of its own; nothing here imports the sidecar.
"""
