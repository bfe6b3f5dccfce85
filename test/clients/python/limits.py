"""Sends one call with the built-in retries of a client, and prints the answer or the name of the error.

Usage: python limits.py SDK sync|async. Reads the URL of the server and the key from the environment.
Prints `ready` when the client module is loaded, and waits for a line on stdin before the call.
"""

import asyncio
import inspect
import os
import sys

URL, KEY = os.environ['SERVER_URL'], os.environ['KEY']
MESSAGES = [{'role': 'user', 'content': 'Hello'}]


def openai_call(is_async):
    import openai

    client = (openai.AsyncOpenAI if is_async else openai.OpenAI)(base_url=f'{URL}/v1', api_key=KEY)
    return lambda: client.chat.completions.create(model='tiny', messages=MESSAGES)


def anthropic_call(is_async):
    import anthropic

    client = (anthropic.AsyncAnthropic if is_async else anthropic.Anthropic)(base_url=URL, api_key=KEY)
    return lambda: client.messages.create(model='tiny', max_tokens=10, messages=MESSAGES)


def text_of(answer):
    return answer.choices[0].message.content if hasattr(answer, 'choices') else answer.content[0].text


async def main(sdk, mode):
    call = {'openai': openai_call, 'anthropic': anthropic_call}[sdk](mode == 'async')
    print('ready', flush=True)
    sys.stdin.readline()
    try:
        answer = call()
        print(text_of(await answer if inspect.isawaitable(answer) else answer))
    except Exception as error:
        print(type(error).__name__)


asyncio.run(main(*sys.argv[1:]))
