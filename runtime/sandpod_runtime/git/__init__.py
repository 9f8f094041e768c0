"""git, run for a client: what it is asked, what it answers, and secrets that stay out of sight."""
