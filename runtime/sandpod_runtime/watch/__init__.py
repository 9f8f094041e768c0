"""Watching directories: the kernel's inotify, filtered by patterns, coalesced for each subscriber."""
