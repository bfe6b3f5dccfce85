"""Runs a whole batch with a Python client, and cancels another one. Prints `ok` at the end.

Usage: python batches.py SDK sync|async. Reads the URL of the server and the key from the environment.
"""

import asyncio
import inspect
import json
import os
import sys
import time

URL, KEY = os.environ['SERVER_URL'], os.environ['RIGHT_KEY']
HELLO = [{'role': 'user', 'content': 'Hello'}]
STORY = [{'role': 'user', 'content': 'Tell me a story.'}]
GREETING = 'Hello! How can I help you?'
# Enough that most of them wait while the first ones run.
MANY = 60


async def done(result):
    return await result if inspect.isawaitable(result) else result


async def items(result):
    result = await done(result)
    return [item async for item in result] if hasattr(result, '__aiter__') else [*result]


async def polled(retrieve, statuses):
    """Polls until the status is one of these."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        batch = await done(retrieve())
        if getattr(batch, 'processing_status', None) in statuses or getattr(batch, 'status', None) in statuses:
            return batch
        await asyncio.sleep(0.05)
    raise AssertionError(f'{batch} has none of the statuses {statuses}')


async def refused(call, error):
    try:
        await done(call())
    except error:
        return
    raise AssertionError(f'expected {error.__name__}')


async def anthropic_batches(is_async):
    import anthropic

    Client = anthropic.AsyncAnthropic if is_async else anthropic.Anthropic
    client = Client(base_url=URL, api_key=KEY, max_retries=0)
    batches = client.messages.batches
    params = {'model': 'tiny', 'max_tokens': 50, 'messages': HELLO}

    created = await done(
        batches.create(
            requests=[
                {'custom_id': 'good', 'params': {**params, 'temperature': 0}},
                {'custom_id': 'bad', 'params': {**params, 'max_tokens': -1}},
            ]
        )
    )
    batch = await polled(lambda: batches.retrieve(created.id), ['ended'])
    assert (batch.request_counts.succeeded, batch.request_counts.errored) == (1, 1), batch
    results = {result.custom_id: result.result for result in await items(batches.results(batch.id))}
    good, bad = results['good'], results['bad']
    assert good.message.content[0].text == GREETING and good.message.usage.service_tier == 'batch', good
    assert bad.error.error.type == 'invalid_request_error', bad
    assert 'max_tokens: Input should be' in bad.error.error.message, bad
    assert batch.id in [listed.id for listed in await items(batches.list(limit=1))]
    assert (await done(batches.cancel(batch.id))).processing_status == 'ended'
    assert (await done(batches.delete(batch.id))).type == 'message_batch_deleted'
    await refused(lambda: batches.retrieve(batch.id), anthropic.NotFoundError)

    story = {**params, 'messages': STORY, 'max_tokens': 100}
    many = [{'custom_id': f'item-{index}', 'params': story} for index in range(MANY)]
    running = await done(batches.create(requests=many))
    # Before it is canceled, because a canceled batch may end at once.
    await refused(lambda: batches.delete(running.id), anthropic.BadRequestError)
    canceling = await done(batches.cancel(running.id))
    assert canceling.processing_status == 'canceling' and canceling.cancel_initiated_at, canceling
    ended = await polled(lambda: batches.retrieve(running.id), ['ended'])
    types = [result.result.type for result in await items(batches.results(running.id))]
    assert len(types) == MANY and types.count('canceled') == ended.request_counts.canceled > 0, ended


async def openai_batches(is_async):
    import openai

    Client = openai.AsyncOpenAI if is_async else openai.OpenAI
    client = Client(base_url=f'{URL}/v1', api_key=KEY, max_retries=0)
    ENDED = ['completed', 'failed', 'cancelled']

    async def create(requests):
        lines = [
            json.dumps(
                {
                    'custom_id': custom_id,
                    'method': 'POST',
                    'url': '/v1/chat/completions',
                    'body': {'model': 'tiny', 'temperature': 0, 'messages': HELLO, **fields},
                }
            )
            for custom_id, fields in requests.items()
        ]
        content = '\n'.join(lines).encode()
        file = await done(client.files.create(file=('requests.jsonl', content), purpose='batch'))
        assert (await done(client.files.content(file.id))).content == content
        batch = await done(
            client.batches.create(
                input_file_id=file.id,
                endpoint='/v1/chat/completions',
                completion_window='24h',
                metadata={'night': 'one'},
            )
        )
        return file, batch

    async def lines_of(file):
        text = (await done(client.files.content(file))).text
        return {line['custom_id']: line for line in map(json.loads, text.splitlines())}

    file, created = await create({'good': {}, 'bad': {'temperature': 3}})
    batch = await polled(lambda: client.batches.retrieve(created.id), ENDED)
    counts = batch.request_counts
    assert (batch.status, counts.total, counts.completed, counts.failed) == ('completed', 2, 1, 1), batch
    output, errors = await lines_of(batch.output_file_id), await lines_of(batch.error_file_id)
    assert output['good']['response']['body']['choices'][0]['message']['content'] == GREETING, output
    assert errors['bad']['response']['status_code'] == 400, errors
    assert batch.id in [listed.id for listed in await items(client.batches.list(limit=1))]
    files = [listed.id for listed in await items(client.files.list(limit=1))]
    for one in (file.id, batch.output_file_id, batch.error_file_id):
        assert one in files
        assert (await done(client.files.delete(one))).deleted
        await refused(lambda one=one: client.files.retrieve(one), openai.NotFoundError)

    story = {'messages': STORY, 'max_tokens': 100}
    _, running = await create({f'item-{index}': story for index in range(MANY)})
    await polled(lambda: client.batches.retrieve(running.id), ['in_progress'])
    assert (await done(client.batches.cancel(running.id))).status == 'cancelling'
    batch = await polled(lambda: client.batches.retrieve(running.id), ENDED)
    others = await lines_of(batch.error_file_id)
    assert batch.status == 'cancelled' and others, batch
    assert {line['error']['code'] for line in others.values()} == {'batch_cancelled'}, others
    assert batch.request_counts.completed + len(others) == MANY, batch


async def main(sdk, mode):
    await {'openai': openai_batches, 'anthropic': anthropic_batches}[sdk](mode == 'async')
    print('ok')


asyncio.run(main(*sys.argv[1:]))
