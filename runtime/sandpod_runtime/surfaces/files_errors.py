"""Which errors the endpoints for files answer with, besides those that every one may."""

COMMON = (
    "FILE_NOT_FOUND",
    "PERMISSION_DENIED",
    "NOT_DIRECTORY",
    "NAME_TOO_LONG",
    "TOO_MANY_LINKS",
    "FILESYSTEM_ERROR",
)
READING = (*COMMON, "FILE_TOO_LARGE")
WRITING = (*COMMON, "IS_DIRECTORY", "READ_ONLY", "NO_SPACE", "FILE_TOO_LARGE")
CHANGING = (*COMMON, "FILE_EXISTS", "IS_DIRECTORY", "READ_ONLY", "NO_SPACE", "RESOURCE_BUSY")
