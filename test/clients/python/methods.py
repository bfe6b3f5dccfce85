"""Calls every method of Ollama's Python client, and prints a JSON line with the name and the failure of each.

Usage: python methods.py sync|async. Reads from the environment the URL and the key of the server, the registry
(host:port), and the path of a GGUF file.
"""

import asyncio
import hashlib
import inspect
import json
import os
import sys
import traceback

import httpx
import ollama

URL, KEY = os.environ['SERVER_URL'], os.environ['RIGHT_KEY']
REGISTRY, GGUF = os.environ['REGISTRY'], os.environ['GGUF']
MODE = sys.argv[1]

HELLO = [{'role': 'user', 'content': 'Hello'}]
GREETING = 'Hello! How can I help you?'
GREEDY = {'temperature': 0}

METHODS = {}


def method(test):
    METHODS[test.__name__] = test
    return test


def client_of(**options):
    Client = ollama.AsyncClient if MODE == 'async' else ollama.Client
    return Client(host=URL, headers={'Authorization': f'Bearer {KEY}'}, **options)


async def done(result):
    return await result if inspect.isawaitable(result) else result


async def items(result):
    result = await done(result)
    return [item async for item in result] if hasattr(result, '__aiter__') else [*result]


async def refused(call, status):
    try:
        await done(call())
    except ollama.ResponseError as error:
        assert error.status_code == status, error
        return error.error
    raise AssertionError(f'expected status {status}')


def name(what):
    return f'py-{MODE}-{what}'


@method
async def generate(client):
    whole = await done(client.generate(model='tiny', prompt='Hello', options=GREEDY))
    parts = await items(client.generate(model='tiny', prompt='Hello', options=GREEDY, stream=True))
    assert whole.response == GREETING and whole.done_reason == 'stop', whole
    assert ''.join(part.response for part in parts) == GREETING
    assert parts[-1].done and parts[-1].eval_count == whole.eval_count
    assert whole.context and whole.total_duration > 0


@method
async def chat(client):
    def get_weather(city: str) -> str:
        """Get the weather

        Args:
          city: The city
        """
        return f'sunny in {city}'

    question = [{'role': 'user', 'content': 'What is the weather in Paris?'}]
    called = await done(client.chat(model='tiny', messages=question, tools=[get_weather], options=GREEDY))
    [call] = called.message.tool_calls
    assert (call.function.name, dict(call.function.arguments)) == ('get_weather', {'city': 'Paris'})
    assert called.message.thinking
    result = {'role': 'tool', 'content': get_weather(**call.function.arguments), 'tool_name': 'get_weather'}
    messages = [*question, called.message, result]
    answer = await done(client.chat(model='tiny', messages=messages, tools=[get_weather], options=GREEDY))
    assert 'sunny' in answer.message.content, answer

    parts = await items(client.chat(model='tiny', messages=HELLO, think=False, options=GREEDY, stream=True))
    assert ''.join(part.message.content for part in parts) == GREETING
    assert not any(part.message.thinking for part in parts)

    schema = {'type': 'object', 'properties': {'mood': {'enum': ['blue', 'green']}}, 'required': ['mood']}
    output = await done(client.chat(model='tiny', messages=HELLO, format=schema, think=False, options=GREEDY))
    assert json.loads(output.message.content)['mood'] in ('blue', 'green')


@method
async def embed(client):
    one = await done(client.embed(model='bert', input='hello world'))
    two = await done(client.embed(model='bert', input=['b', 'hello world'], truncate=False))
    assert len(one.embeddings) == 1 and len(two.embeddings) == 2
    assert abs(one.embeddings[0][0] - 0.0125118345) < 1e-3 and one.prompt_eval_count == 4


@method
async def embeddings(client):
    answer = await done(client.embeddings(model='bert', prompt='hello world'))
    assert len(answer.embedding) == 64


@method
async def create_blob(client):
    with open(GGUF, 'rb') as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    assert await done(client.create_blob(GGUF)) == f'sha256:{digest}'


@method
async def create(client):
    made = await done(
        client.create(model=name('bob'), from_='tiny', system='You are Bob.', parameters={'temperature': 0})
    )
    assert made.status == 'success', made
    digest = await done(client.create_blob(GGUF))
    parts = await items(client.create(model=name('file'), files={'tiny.gguf': digest}, stream=True))
    statuses = [part.status for part in parts]
    assert statuses[0] == 'parsing GGUF' and statuses[-2:] == ['writing manifest', 'success'], statuses
    answer = await done(client.chat(model=name('file'), messages=HELLO, options=GREEDY))
    assert answer.message.content == GREETING
    assert 'files' in await refused(lambda: client.create(model=name('nothing')), 400)


@method
async def show(client):
    await done(client.create(model=name('shown'), from_='tiny', system='You are Bob.', parameters={'stop': ['a', 'b']}))
    shown = await done(client.show(name('shown')))
    assert shown.modelfile.startswith('# Modelfile generated by "ollama show"')
    assert 'SYSTEM You are Bob.' in shown.modelfile and 'stop' in shown.parameters
    assert shown.modelinfo['general.architecture'] == 'llama' and shown.details.format == 'gguf'
    assert 'tools' in shown.capabilities
    await refused(lambda: client.show('nope'), 404)


@method
async def copy(client):
    copied = await done(client.copy('tiny', name('copy')))
    assert copied.status == 'success'
    answer = await done(client.generate(model=name('copy'), prompt='Hello', options=GREEDY))
    assert answer.response == GREETING
    await refused(lambda: client.copy('nope', 'copy'), 404)


@method
async def delete(client):
    await done(client.copy('tiny', name('gone')))
    deleted = await done(client.delete(name('gone')))
    assert deleted.status == 'success'
    await refused(lambda: client.show(name('gone')), 404)
    await refused(lambda: client.delete(name('gone')), 404)


@method
async def list(client):
    await done(client.copy('tiny', name('listed')))
    listed = {model.model: model for model in (await done(client.list())).models}
    model = listed[f'{name("listed")}:latest']
    assert 'tiny:latest' in listed and model.size > 1_000_000 and len(model.digest) == 64
    assert model.modified_at.timestamp() > 1e9 and model.details.quantization_level == 'Q8_0'


@method
async def ps(client):
    await done(client.generate(model='tiny', keep_alive='10m'))
    running = {model.model: model for model in (await done(client.ps())).models}
    model = running['tiny:latest']
    assert model.size > 1_000_000 and model.context_length > 0
    assert model.expires_at.timestamp() > 1e9


def whole_layers(parts):
    """Expects one progress line per layer, already complete, since each layer exists on both sides."""
    layers = [part for part in parts if part.digest]
    assert len(layers) > 2 and all(part.total == part.completed for part in layers), layers


@method
async def push(client):
    pushed = f'{REGISTRY}/library/{name("pushed")}:latest'
    await done(client.create(model=pushed, from_='tiny', system='You are pushed.'))
    assert (await done(client.push(pushed, insecure=True))).status == 'success'
    parts = await items(client.push(pushed, insecure=True, stream=True))
    assert parts[0].status == 'retrieving manifest' and parts[-1].status == 'success'
    whole_layers(parts)


@method
async def pull(client):
    pulled = f'{REGISTRY}/library/{name("pulled")}:latest'
    await done(client.create(model=pulled, from_='tiny', system='You are pulled.'))
    await done(client.push(pulled, insecure=True))
    await done(client.delete(pulled))
    assert (await done(client.pull(pulled, insecure=True))).status == 'success'
    assert (await done(client.show(pulled))).modelfile.count('You are pulled.') == 1
    parts = await items(client.pull(pulled, insecure=True, stream=True))
    assert parts[0].status == 'pulling manifest' and parts[-1].status == 'success'
    whole_layers(parts)


@method
async def close(client):
    other = client_of()
    await done(other.list())
    await done(other.close())
    try:
        await done(other.list())
    except RuntimeError:
        return
    raise AssertionError('expected a client that is closed')


@method
async def systemone(client):
    # Neither Modelmount nor this version of Ollama has that route.
    questions = {'sky': {'type': 'noul', 'instructions': 'Is the sky blue?'}}
    await refused(lambda: client.systemone('tiny', 'It is day.', questions), 404)


async def elsewhere(call, answer):
    """Expects that the client calls ollama.com instead of the configured server."""
    hosts = []

    def transport(request):
        hosts.append(request.url.host)
        return httpx.Response(200, json=answer)

    await done(call(client_of(transport=httpx.MockTransport(transport))))
    assert hosts == ['ollama.com'], hosts


@method
async def web_search(client):
    await elsewhere(lambda other: other.web_search('tea'), {'results': []})


@method
async def web_fetch(client):
    await elsewhere(lambda other: other.web_fetch('https://example.com'), {'title': '', 'content': '', 'links': []})


async def main():
    client = client_of()
    public = [key for key in dir(client) if not key.startswith('_') and callable(getattr(client, key))]
    for key in sorted({*public, *METHODS}):
        failure = None
        try:
            await METHODS[key](client)
        except Exception:
            failure = traceback.format_exc()
        print(json.dumps({'method': key, 'failure': failure}), flush=True)


asyncio.run(main())
