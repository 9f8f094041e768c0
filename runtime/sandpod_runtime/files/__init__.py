"""Files: what is read, written, listed, moved and sent. What blocks here runs in the disk's threads."""
