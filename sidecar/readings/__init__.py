"""What a snapshot says of one engine, gateway or GPU, gathered from its samples."""
