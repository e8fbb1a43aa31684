"""Whether latencies of now are those of the same hour on earlier days: records and statistics."""
