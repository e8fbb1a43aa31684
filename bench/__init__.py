"""The benches: each module measures one thing, explains it, and ends with one line of JSON."""
