"""Tries Python clients in all situations, and prints the failure of each as JSON, or null.

Usage: python run.py MODULE, with the URLs of the servers in the environment.
"""

import asyncio
import contextlib
import importlib
import json
import sys
import traceback


async def attempt(situation):
    try:
        await situation()
    except Exception:
        return traceback.format_exc()
    return None


async def main():
    results = {}
    # Some clients print hints.
    with contextlib.redirect_stdout(sys.stderr):
        for client, situations in importlib.import_module(sys.argv[1]).clients().items():
            results[client] = {name: await attempt(run) for name, run in situations.items()}
    print(json.dumps(results))


asyncio.run(main())
