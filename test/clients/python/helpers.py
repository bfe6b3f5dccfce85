"""Checks the helpers and errors of a Python client, while heartbeats come between all frames. Prints `ok` at the end.

Usage: python helpers.py SDK sync|async. Reads the URL of the server from the environment. The name of the model chooses
the answer: text, a call of a tool, nothing, or an error.
"""

import asyncio
import contextlib
import inspect
import os
import sys

URL = os.environ['SERVER_URL']
HELLO = [{'role': 'user', 'content': 'Hello'}]
GREETING = 'Hello there.'
PARAMETERS = {'type': 'object', 'properties': {'city': {'type': 'string'}}, 'required': ['city']}


async def done(result):
    return await result if inspect.isawaitable(result) else result


@contextlib.asynccontextmanager
async def opened(manager):
    """Enters a stream of a synchronous or asynchronous client."""
    if hasattr(manager, '__aenter__'):
        async with manager as stream:
            yield stream
    else:
        with manager as stream:
            yield stream


async def items(result):
    return [item async for item in result] if hasattr(result, '__aiter__') else [*result]


async def name_of_error(call):
    try:
        await done(call())
    except Exception as error:
        assert 'What to do next.' in str(error), error
        return type(error).__name__


async def expect_errors(call, expected):
    for code, name in expected.items():
        found = await name_of_error(lambda code=code: call(f'error-{code}'))
        assert found == name, f'{code}: {found}'


COMMON_ERRORS = {
    'invalid_request': 'BadRequestError',
    'authentication': 'AuthenticationError',
    'permission': 'PermissionDeniedError',
    'not_found': 'NotFoundError',
    'conflict': 'ConflictError',
    'rate_limit': 'RateLimitError',
    'upstream': 'InternalServerError',
}


async def openai_helpers(is_async):
    import openai

    Client = openai.AsyncOpenAI if is_async else openai.OpenAI
    client = Client(base_url=f'{URL}/v1', api_key='any', max_retries=0)

    async with opened(client.chat.completions.stream(model='tiny', messages=HELLO)) as stream:
        deltas = [event.delta for event in await items(stream) if event.type == 'content.delta']
        final = await done(stream.get_final_completion())
    assert ''.join(deltas) == final.choices[0].message.content == GREETING, final

    function = {'name': 'weather', 'parameters': {**PARAMETERS, 'additionalProperties': False}, 'strict': True}
    tools = [{'type': 'function', 'function': function}]
    async with opened(client.chat.completions.stream(model='calls', messages=HELLO, tools=tools)) as stream:
        await items(stream)
        final = await done(stream.get_final_completion())
    assert final.choices[0].message.tool_calls[0].function.parsed_arguments == {'city': 'Paris'}, final

    async with opened(client.responses.stream(model='tiny', input='Hello')) as stream:
        deltas = [event.delta for event in await items(stream) if event.type == 'response.output_text.delta']
        final = await done(stream.get_final_response())
    assert ''.join(deltas) == final.output_text == GREETING, final

    tools = [{'type': 'function', 'name': 'weather', 'parameters': PARAMETERS}]
    async with opened(client.responses.stream(model='calls', input='Hello', tools=tools)) as stream:
        await items(stream)
        final = await done(stream.get_final_response())
    assert final.output[0].arguments == '{"city":"Paris"}', final

    packed = await done(client.embeddings.create(model='tiny', input=['fox', 'dog']))
    floats = await done(client.embeddings.create(model='tiny', input=['fox', 'dog'], encoding_format='float'))
    for one, other in zip(packed.data, floats.data):
        assert len(one.embedding) == 8
        assert all(abs(a - b) < 1e-6 for a, b in zip(one.embedding, other.embedding)), one

    ask = client.chat.completions.create
    errors = {**COMMON_ERRORS, 'too_large': 'APIStatusError', 'overloaded': 'InternalServerError'}
    await expect_errors(lambda model: ask(model=model, messages=HELLO), errors)


async def anthropic_helpers(is_async):
    import anthropic

    Client = anthropic.AsyncAnthropic if is_async else anthropic.Anthropic
    messages = Client(base_url=URL, api_key='any', max_retries=0).messages
    asked = {'max_tokens': 50, 'messages': HELLO}

    async def final_of(model, **fields):
        async with opened(messages.stream(model=model, **asked, **fields)) as stream:
            texts = await items(stream.text_stream)
            final = await done(stream.get_final_message())
        assert ''.join(texts) == ''.join(block.text for block in final.content if block.type == 'text'), final
        return final

    final = await final_of('tiny')
    assert final.content[0].text == GREETING and final.usage.input_tokens > 0, final
    tools = [{'name': 'weather', 'input_schema': PARAMETERS}]
    final = await final_of('calls', tools=tools)
    assert final.content[0].input == {'city': 'Paris'} and final.stop_reason == 'tool_use', final
    whole = await done(messages.create(model='nothing', **asked))
    assert whole.content == (await final_of('nothing')).content == [], whole

    errors = {**COMMON_ERRORS, 'too_large': 'ContentTooLargeError', 'overloaded': 'OverloadedError'}
    await expect_errors(lambda model: messages.create(model=model, **asked), errors)


async def main(sdk, mode):
    await {'openai': openai_helpers, 'anthropic': anthropic_helpers}[sdk](mode == 'async')
    print('ok')


asyncio.run(main(*sys.argv[1:]))
