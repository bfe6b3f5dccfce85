"""Runs every situation with one Python client, and prints a JSON line for each.

Usage: python situations.py SDK sync|async. Reads the URL of the server and the keys from the environment.
"""

import asyncio
import contextlib
import inspect
import json
import os
import sys
import time
import traceback

URL = os.environ['SERVER_URL']
RIGHT, WRONG = os.environ['RIGHT_KEY'], os.environ['WRONG_KEY']

HELLO = [{'role': 'user', 'content': 'Hello'}]
GREETING = 'Hello! How can I help you?'
LONG = [{'role': 'user', 'content': 'fox ' * 5_000}]
# The model continues this prompt until its context is full, which takes most of a minute.
SONG = [{'role': 'user', 'content': 'Sing.'}, {'role': 'assistant', 'content': ' '.join(['la'] * 60)}]


class OpenAI:
    def __init__(self, is_async):
        import openai

        self.Client = openai.AsyncOpenAI if is_async else openai.OpenAI
        self.bad_fields = {'temperature': 3}
        self.errors = {
            'unknown model': (openai.NotFoundError, {'status_code': 404, 'code': 'model_not_found'}),
            'bad body': (openai.BadRequestError, {'status_code': 400, 'param': 'temperature'}),
            'too long prompt': (openai.BadRequestError, {'status_code': 400, 'code': 'context_length_exceeded'}),
            'engine killed': (openai.APIError, {'type': 'server_error', 'message': 'model process'}),
            'wrong key': (openai.AuthenticationError, {'status_code': 401, 'code': 'invalid_api_key'}),
        }

    def connect(self, url, key):
        return self.Client(base_url=f'{url}/v1', api_key=key, max_retries=0)

    def environment(self, url, key):
        return {'OPENAI_BASE_URL': f'{url}/v1', 'OPENAI_API_KEY': key}

    def connect_from_environment(self):
        return self.Client(max_retries=0)

    def call(self, client, messages, **fields):
        question = {'model': 'tiny', 'temperature': 0, 'messages': messages, **fields}
        return client.chat.completions.create(**question)

    def text_of(self, completion):
        return completion.choices[0].message.content

    def piece_of(self, chunk):
        return chunk.choices[0].delta.content if chunk.choices else None


class Anthropic:
    def __init__(self, is_async):
        import anthropic

        self.Client = anthropic.AsyncAnthropic if is_async else anthropic.Anthropic
        self.bad_fields = {'max_tokens': -1}
        self.errors = {
            'unknown model': (anthropic.NotFoundError, {'status_code': 404, 'type': 'not_found_error'}),
            'bad body': (anthropic.BadRequestError, {'message': 'max_tokens: Input should be'}),
            'too long prompt': (anthropic.BadRequestError, {'message': 'prompt is too long'}),
            'engine killed': (anthropic.APIStatusError, {'type': 'api_error', 'message': 'model process'}),
            'wrong key': (anthropic.AuthenticationError, {'status_code': 401, 'type': 'authentication_error'}),
        }

    def connect(self, url, key):
        return self.Client(base_url=url, api_key=key, max_retries=0)

    def environment(self, url, key):
        return {'ANTHROPIC_BASE_URL': url, 'ANTHROPIC_API_KEY': key}

    def connect_from_environment(self):
        return self.Client(max_retries=0)

    def call(self, client, messages, **fields):
        question = {'model': 'tiny', 'max_tokens': 4_000, 'messages': messages, **fields}
        # The newest client has no `temperature` parameter.
        return client.messages.create(**question, extra_body={'temperature': 0})

    def text_of(self, message):
        return ''.join(block.text for block in message.content)

    def piece_of(self, event):
        return event.delta.text if event.type == 'content_block_delta' else None


class Ollama:
    def __init__(self, is_async):
        import ollama

        self.Client = ollama.AsyncClient if is_async else ollama.Client
        self.bad_fields = {'keep_alive': 'soon'}
        self.errors = {
            'unknown model': (ollama.ResponseError, {'status_code': 404, 'error': "model 'nope' not found"}),
            'bad body': (ollama.ResponseError, {'status_code': 400}),
            'too long prompt': (ollama.ResponseError, {'status_code': 400, 'error': 'context length'}),
            'engine killed': (ollama.ResponseError, {'error': 'model process'}),
            'wrong key': (ollama.ResponseError, {'status_code': 401}),
        }

    def connect(self, url, key):
        return self.Client(host=url, headers={'Authorization': f'Bearer {key}'})

    def environment(self, url, key):
        return {'OLLAMA_HOST': url, 'OLLAMA_API_KEY': key}

    def connect_from_environment(self):
        return self.Client()

    def call(self, client, messages, **fields):
        question = {'model': 'tiny', 'options': {'temperature': 0}, 'messages': messages, **fields}
        return client.chat(**question)

    def text_of(self, response):
        return response.message.content

    def piece_of(self, part):
        return part.message.content


async def resolved(value):
    """Asynchronous clients return an awaitable, synchronous clients the value."""
    return await value if inspect.isawaitable(value) else value


async def ask(sdk, client, messages, **fields):
    return sdk.text_of(await resolved(sdk.call(client, messages, **fields)))


async def pieces_of(sdk, stream):
    if hasattr(stream, '__aiter__'):
        async for item in stream:
            if piece := sdk.piece_of(item):
                yield piece
    else:
        for item in stream:
            if piece := sdk.piece_of(item):
                yield piece


async def stream_of(sdk, client, messages):
    return await resolved(sdk.call(client, messages, stream=True))


async def refused(sdk, failure, call):
    """Expects an error of exactly this class, since subclasses are for broken sockets. Returns its name."""
    expected, fields = sdk.errors[failure]
    try:
        await call
    except Exception as error:
        assert type(error) is expected, f'{type(error)}: {error}'
        for field, words in fields.items():
            assert str(words) in str(getattr(error, field)), f'{field}: {error}'
        return expected.__name__
    raise AssertionError('Nothing was raised.')


async def whole(sdk):
    assert await ask(sdk, sdk.connect(URL, RIGHT), HELLO) == GREETING
    return 'ok'


async def streamed(sdk):
    stream = await stream_of(sdk, sdk.connect(URL, RIGHT), HELLO)
    pieces = [piece async for piece in pieces_of(sdk, stream)]

    assert ''.join(pieces) == GREETING
    assert len(pieces) > 3
    return 'ok'


async def aborted(sdk):
    client = sdk.connect(URL, RIGHT)
    stream = await stream_of(sdk, client, SONG)
    pieces = pieces_of(sdk, stream)
    await anext(pieces)
    await anext(pieces)
    await resolved((getattr(stream, 'aclose', None) or stream.close)())

    # The client may still emit data of the same packet, and some clients then raise an error. If the aborted
    # answer went on, the next call would be slow.
    aborted_at = time.monotonic()
    with contextlib.suppress(Exception):
        async for _ in pieces:
            pass
    next_answer = await ask(sdk, client, HELLO)

    assert next_answer == GREETING
    assert time.monotonic() - aborted_at < 5
    return 'ends'


async def unknown_model(sdk):
    return await refused(sdk, 'unknown model', ask(sdk, sdk.connect(URL, RIGHT), HELLO, model='nope'))


async def bad_body(sdk):
    return await refused(sdk, 'bad body', ask(sdk, sdk.connect(URL, RIGHT), HELLO, **sdk.bad_fields))


async def too_long(sdk):
    return await refused(sdk, 'too long prompt', ask(sdk, sdk.connect(URL, RIGHT), LONG))


async def killed(sdk):
    client = sdk.connect(URL, RIGHT)
    stream = await stream_of(sdk, client, SONG)

    async def read():
        has_asked = False
        async for _ in pieces_of(sdk, stream):
            if not has_asked:
                report(please='kill the engine')
            has_asked = True

    outcome = await refused(sdk, 'engine killed', read())
    assert await ask(sdk, client, HELLO) == GREETING
    return outcome


async def key_from_environment(sdk):
    os.environ.update(sdk.environment(URL, WRONG))
    await refused(sdk, 'wrong key', ask(sdk, sdk.connect_from_environment(), HELLO))

    os.environ.update(sdk.environment(URL, RIGHT))
    assert await ask(sdk, sdk.connect_from_environment(), HELLO) == GREETING
    return 'key and URL'


SITUATIONS = {
    'non-streamed answer': whole,
    'streamed answer': streamed,
    'aborted mid-stream': aborted,
    'unknown model': unknown_model,
    'bad body': bad_body,
    'too long prompt': too_long,
    'engine killed mid-stream': killed,
    'key from the environment': key_from_environment,
}


def report(**line):
    print(json.dumps(line), flush=True)


async def main(name, mode):
    sdk = {'openai': OpenAI, 'anthropic': Anthropic, 'ollama': Ollama}[name](mode == 'async')
    for situation, run in SITUATIONS.items():
        try:
            report(situation=situation, outcome=await run(sdk))
        except Exception:
            report(situation=situation, failure=traceback.format_exc())


asyncio.run(main(*sys.argv[1:]))
