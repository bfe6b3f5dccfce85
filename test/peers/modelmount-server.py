#!/usr/bin/env python3
"""
Stands for the process of llama-server: has the test suite that runs it start Modelmount with the same flags. The server
runs until this process ends, which closes the connection.
"""
import json
import os
import socket
import sys

with socket.create_connection(("127.0.0.1", int(os.environ["STARTER_PORT"]))) as starter:
    starter.sendall(json.dumps(sys.argv[1:]).encode() + b"\n")
    reason = starter.makefile(encoding="utf-8").read()
sys.exit(reason or "The starter is gone.")
