"""The runtime's start beside a plain `import aiohttp.web`, in the default image, in turn.

Both are started by the same loader and interpreter, and both take their modules from the runtime's own
bundle. The driver is the image's own python3.
"""

import json
import subprocess

from tests.bench.cluster import ENV
from tests.bench.stats import Row, Section, p50, pair

IMPORT = """
import marshal, sys
code = marshal.loads(open(sys.prefix + "/lib/boot.pyc", "rb").read()[16:])
boot = {"__name__": "boot"}
exec(code, boot)
library = "%s/lib/python%d.%d" % (sys.prefix, *sys.version_info[:2])
sys.meta_path.insert(2, boot["Bundle"](sys.prefix + "/lib/modules", library=library))
import aiohttp.web
"""
DRIVER = """
import glob, json, os, signal, socket, subprocess, sys, time
rounds, script = int(sys.argv[1]), sys.argv[2]
home = "/opt/sandpod"
loader, = glob.glob(home + "/lib/ld-*")
python = [loader, "--inhibit-cache", "--library-path", home + "/lib", home + "/bin/python3"]
environment = {**os.environ, "SANDPOD_BIND_SHA256": "0" * 64}

def imported():
    began = time.perf_counter()
    subprocess.run([*python, "-I", "-S", "-B", "-X", "utf8", "-c", script], check=True)
    return time.perf_counter() - began

def answering():
    began = time.perf_counter()
    process = subprocess.Popen([home + "/bin/sandpod-runtime"], env=environment, stderr=subprocess.DEVNULL)
    while True:
        try:
            with socket.create_connection(("127.0.0.1", 3000)) as connection:
                connection.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
                assert connection.recv(4096).startswith(b"HTTP/1.")
            break
        except ConnectionRefusedError:
            assert process.poll() is None, "the runtime ended"
            time.sleep(0.001)
    took = time.perf_counter() - began
    process.send_signal(signal.SIGKILL)
    process.wait()
    return took

imported(), answering()
pairs = [(imported(), answering()) for _ in range(rounds)]
print(json.dumps({"imported": [a for a, _ in pairs], "answering": [b for _, b in pairs]}))
"""


def measure(image: str, *, rounds: int) -> Section:
    """Runs the driver in a container of the default image."""
    command = ["docker", "run", "--rm", "-i", "--entrypoint", "python3", image, "-", str(rounds), IMPORT]
    output = subprocess.run(command, check=True, capture_output=True, text=True, input=DRIVER, env=ENV).stdout
    figures: dict[str, list[float]] = json.loads(output)
    imported, answering = figures["imported"], figures["answering"]
    ratio = p50(answering) / p50(imported)
    return Section(
        title=f"Start of the runtime ({rounds} each, in turn, image present)",
        rows=[
            Row(
                what="`import aiohttp.web` and exit",
                figure=pair(imported),
                how="p50 / p90; the runtime's own interpreter and bundle",
            ),
            Row(what="start → first answer", figure=pair(answering), how="p50 / p90"),
            Row(what="ratio of the two p50", figure=f"{ratio:.2f}", goal="≤ 1.3"),
        ],
    )
