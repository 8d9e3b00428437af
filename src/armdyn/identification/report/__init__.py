"""What was identified, in words and pictures."""
