"""`python -m sandpod_runtime`: reads the options, then serves until it is told to stop.

Imports wait until the collector is off: a cold start is mostly imports, and collecting while they run frees
nothing.
"""

import gc
import sys


def main() -> int:
    gc.disable()
    if sys.argv[1:2] == ["search-worker"]:
        # The runtime has started this process (search/start.py), in the only way that works in every image.
        from sandpod_runtime.search import worker

        return worker.main(sys.argv[2])
    from sandpod_runtime import options

    try:
        chosen = options.read(sys.argv[1:])
        isolation = None
        if chosen.strict is not None:
            # Before the other imports: the world's first process is a fork of this one.
            from sandpod_runtime.strict import start

            isolation = start.isolated(chosen, user=chosen.strict)
    except options.OptionsError as error:
        sys.stderr.write(f"sandpod-runtime: {error}\n")
        return 2
    from sandpod_runtime import environment, hardening, listening

    # Nobody can read it, not even we, once the memory is hidden.
    image = environment.original()
    open_files = hardening.prepare_files()
    hardening.harden()
    try:
        sockets = listening.listeners(chosen)
    except OSError as error:
        sys.stderr.write(f"sandpod-runtime: cannot listen on port {chosen.port}: {error}\n")
        return 1
    # Nine tenths of the start are these imports.
    from sandpod_runtime import server

    return server.run(chosen, sockets=sockets, image=image, open_files=open_files, isolation=isolation)


if __name__ == "__main__":
    sys.exit(main())
