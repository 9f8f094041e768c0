"""What can go wrong in this room and is not the API server's doing (that is sandpod_crds.errors)."""


class BadSettings(Exception):
    """SANDPOD_SETTINGS is missing or says something that we do not understand."""


class NotInstalled(Exception):
    """The API server does not know our resources."""


class BadPodTemplate(Exception):
    """The podTemplate cannot be merged into a pod; the message names the place and what belongs there."""


class BadSecret(Exception):
    """A Secret of the installation is there and not usable; the message says what to do about it."""


class CertificateFailed(Exception):
    """The process that makes certificates did not make one."""
