"""What is written about all families at once: the front page, the checks, and the data for machines."""
