"""LiteLLM's SDK on all three APIs."""

import json

import litellm
from pydantic import BaseModel
from questions import CALL, INSTRUCTED, PARALLEL_CALLS, PARALLEL_RESULTS, RESULT, TINY, equal, greets, weather

PARAMETERS = {'type': 'object', 'properties': {'city': {'type': 'string'}}, 'required': ['city']}
TOOLS = [{'type': 'function', 'function': {'name': 'weather', 'description': 'It.', 'parameters': PARAMETERS}}]
litellm.telemetry = False


class City(BaseModel):
    city: str


def user(text):
    return {'role': 'user', 'content': text}


def situations(model, path):
    def ask(messages, url=INSTRUCTED, **more):
        settings = {'model': model, 'api_base': url + path, 'api_key': 'any', 'num_retries': 0}
        return litellm.acompletion(messages=messages, **settings, **more)

    async def whole(*args, **more):
        return (await ask(*args, **more)).choices[0].message

    async def streamed(messages, **more):
        chunks = [chunk async for chunk in await ask(messages, stream=True, **more)]
        return litellm.stream_chunk_builder(chunks, messages=messages).choices[0].message

    async def loop(prompt, first=streamed):
        messages = [user(prompt)]
        answer = await first(messages, tools=TOOLS)
        messages.append(answer.model_dump(exclude_none=True))
        for call in answer.tool_calls:
            content = weather(**json.loads(call.function.arguments))
            messages.append({'role': 'tool', 'tool_call_id': call.id, 'content': content})
        return (await whole(messages, tools=TOOLS)).content

    async def built_in_model():
        assert (await whole([user('Hello')], url=TINY)).content
        assert (await streamed([user('Hello')], url=TINY)).content

    async def tool():
        equal(await loop(CALL), RESULT)

    async def parallel_calls():
        # LiteLLM ignores the index of calls in Ollama's streams, and joins all calls to one.
        first = whole if model.startswith('ollama') else streamed
        equal(await loop(PARALLEL_CALLS, first), PARALLEL_RESULTS)

    async def second_turn():
        first = await streamed([user('Hello')])
        equal(first.content, greets(1, 'Hello'))
        messages = [user('Hello'), {'role': 'assistant', 'content': first.content}, user('And again?')]
        equal((await streamed(messages)).content, greets(2, 'And again?'))

    async def structured():
        answer = await whole([user('Where?')], response_format=City)
        equal(City.model_validate_json(answer.content), City(city='Paris'))

    return {
        'built-in model': built_in_model,
        'tool': tool,
        'parallel calls': parallel_calls,
        'second turn': second_turn,
        'object': structured,
    }


def clients():
    return {
        'litellm, openai/': situations('openai/tiny', '/v1'),
        'litellm, openai/responses/': situations('openai/responses/tiny', '/v1'),
        'litellm, anthropic/': situations('anthropic/tiny', ''),
        'litellm, ollama_chat/': situations('ollama_chat/tiny', ''),
    }
