"""From the runtime's options to its isolation, before all else is imported."""

from sandpod_runtime.options import Options, OptionsError
from sandpod_runtime.strict.isolation import Isolation, UnfitError, isolate

_STATE = "/var/lib/sandpod"


def isolated(options: Options, *, user: int) -> Isolation:
    """Raises OptionsError, where running would be worse than not to run."""
    try:
        return isolate(user=user, state=options.state, hidden=(_STATE, options.termination_log))
    except (UnfitError, OSError) as error:
        raise OptionsError(f"--strict {user}: {error}") from error
