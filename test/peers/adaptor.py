"""
A pytest plugin for the tests of llama.cpp's server, which stay as they are. It leaves cases out, replaces models that
would be downloaded by stand-ins, chooses free ports, and writes the outcome of each case as a line of JSON.
"""
import json
import os
import socket
import sys

# The tests import their `utils` from the current directory.
sys.path.insert(0, os.getcwd())
import pytest
import utils

stand_ins = json.loads(os.environ["STAND_INS"])
start = utils.ServerProcess.start


def start_with_stand_in(server, *args, **kwargs):
    if server.model_hf_repo:
        name = "/".join(filter(None, [server.model_hf_repo, server.model_hf_file]))
        if name not in stand_ins:
            raise RuntimeError(f"There is no stand-in for {name}.")
        server.model_file = stand_ins[name]
        server.model_hf_repo = server.model_hf_file = None
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        server.server_port = free.getsockname()[1]
    return start(server, *args, **kwargs)


utils.ServerProcess.start = start_with_stand_in
# It would download the models.
utils.ServerPreset.load_all = staticmethod(lambda: None)


def pytest_collection_modifyitems(config, items):
    left_out = json.loads(os.environ["LEFT_OUT"])
    used = {name: [item for item in items if is_named(item, name)] for name in left_out}
    unused = [name for name in left_out if not used[name]]
    if unused:
        raise pytest.UsageError(f"There is no case of these names: {unused}")
    deselected = {item for found in used.values() for item in found}
    config.hook.pytest_deselected(items=deselected)
    items[:] = [item for item in items if item not in deselected]


def is_named(item, name):
    """A name is that of a file, a function or a case."""
    return name_of(item.nodeid) == name or name_of(item.nodeid).startswith((f"{name}::", f"{name}["))


def name_of(nodeid):
    return nodeid.removeprefix("unit/")


def pytest_runtest_logreport(report):
    if report.when != "call" and report.outcome == "passed":
        return
    message = getattr(report.longrepr, "reprcrash", None)
    outcome = {
        "name": name_of(report.nodeid),
        "outcome": report.outcome,
        "message": message.message if message else str(report.longrepr or ""),
    }
    with open(os.environ["OUTCOMES"], "a", encoding="utf-8") as file:
        file.write(json.dumps(outcome) + "\n")
