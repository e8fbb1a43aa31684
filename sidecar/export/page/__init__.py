"""The status page: rendered on the server, live through one small script, no external request."""
