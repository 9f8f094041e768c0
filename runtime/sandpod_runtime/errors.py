"""Every error that a client can get: the protocol's codes with their statuses, and the exception that
carries one.

A client picks its error class by `code` and reads keys out of `context`, which is therefore always an
object.
"""

from sandpod_runtime.clock import timestamp

Context = dict[str, object]

_BY_STATUS = {
    400: """IS_DIRECTORY NOT_DIRECTORY NAME_TOO_LONG INVALID_COMMAND INVALID_PORT INVALID_PORT_NUMBER
        CUSTOM_DOMAIN_REQUIRED INVALID_GIT_URL INVALID_JSON_RESPONSE VALIDATION_FAILED MISSING_CREDENTIALS
        INVALID_MOUNT_CONFIG BACKUP_EXPIRED INVALID_BACKUP_CONFIG""",
    401: "GIT_AUTH_FAILED UNAUTHENTICATED",
    403: "PERMISSION_DENIED COMMAND_PERMISSION_DENIED PROCESS_PERMISSION_DENIED READ_ONLY",
    404: """FILE_NOT_FOUND COMMAND_NOT_FOUND PROCESS_NOT_FOUND PORT_NOT_EXPOSED GIT_REPOSITORY_NOT_FOUND
        GIT_BRANCH_NOT_FOUND CONTEXT_NOT_FOUND WATCH_NOT_FOUND BACKUP_NOT_FOUND""",
    408: "PROCESS_READY_TIMEOUT",
    409: """FILE_EXISTS PORT_ALREADY_EXPOSED PORT_IN_USE RESOURCE_BUSY SESSION_ALREADY_EXISTS
        OPERATION_INTERRUPTED ALREADY_BOUND NOT_BOUND""",
    410: "SESSION_DESTROYED SESSION_TERMINATED",
    413: "FILE_TOO_LARGE",
    500: """NO_SPACE TOO_MANY_FILES TOO_MANY_LINKS FILESYSTEM_ERROR COMMAND_EXECUTION_ERROR STREAM_START_ERROR
        PROCESS_ERROR PROCESS_EXITED_BEFORE_READY PORT_OPERATION_ERROR GIT_CLONE_FAILED GIT_CHECKOUT_FAILED
        GIT_OPERATION_FAILED CODE_EXECUTION_ERROR BUCKET_MOUNT_ERROR BUCKET_UNMOUNT_ERROR S3FS_MOUNT_ERROR
        BACKUP_CREATE_FAILED BACKUP_RESTORE_FAILED WATCH_START_ERROR WATCH_STOP_ERROR UNKNOWN_ERROR
        INTERNAL_ERROR""",
    501: "PYTHON_NOT_AVAILABLE JAVASCRIPT_NOT_AVAILABLE",
    502: "SERVICE_NOT_RESPONDING GIT_NETWORK_ERROR",
    503: "INTERPRETER_NOT_READY OPENCODE_STARTUP_FAILED RPC_TRANSPORT_ERROR CONTAINER_UNAVAILABLE",
}
STATUS = {code: status for status, codes in _BY_STATUS.items() for code in codes.split()}


class Fault(Exception):
    """A refusal or failure that the client is told of, in the protocol's words."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int | None = None,
        context: Context | None = None,
        operation: str | None = None,
        suggestion: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        # UNKNOWN_ERROR is a 500 in the protocol's table, and a 404 for a path that does not exist.
        self.status = status or STATUS[code]
        self.context: Context = context or {}
        self.operation = operation
        self.suggestion = suggestion

    def body(self) -> dict[str, object]:
        found: dict[str, object] = {
            "code": self.code,
            "message": self.message,
            "context": self.context,
            "httpStatus": self.status,
            "timestamp": timestamp(),
        }
        if self.operation:
            found["operation"] = self.operation
        if self.suggestion:
            found["suggestion"] = self.suggestion
        return found


def invalid(field: str, message: str, *, code: str | None = None) -> Fault:
    """A request whose `field` cannot be accepted."""
    problem = {"field": field, "message": message} | ({"code": code} if code else {})
    return Fault("VALIDATION_FAILED", f"{field}: {message}", context={"validationErrors": [problem]})
