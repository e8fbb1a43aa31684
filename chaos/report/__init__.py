"""What a campaign says, for a terminal, for programs and as a page."""
