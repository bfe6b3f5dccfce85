"""pydantic-ai on three APIs."""

from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.output import NativeOutput, ToolOutput
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from questions import CALL, INSTRUCTED, PARALLEL_CALLS, PARALLEL_RESULTS, RESULT, TINY, equal, greets, weather


class City(BaseModel):
    city: str


def openai(model):
    return lambda url: model('tiny', provider=OpenAIProvider(base_url=f'{url}/v1', api_key='any'))


def anthropic(url):
    return AnthropicModel('tiny', provider=AnthropicProvider(base_url=url, api_key='any'))


def situations(api):
    model = api(INSTRUCTED)

    async def streamed(agent, *args, **more):
        async with agent.run_stream(*args, **more) as answer:
            return await answer.get_output(), answer.all_messages()

    async def built_in_model():
        assert (await Agent(api(TINY)).run('Hello')).output
        assert (await streamed(Agent(api(TINY)), 'Hello'))[0]

    async def tool():
        equal((await Agent(model, tools=[weather]).run(CALL)).output, RESULT)

    async def parallel_calls():
        equal((await streamed(Agent(model, tools=[weather]), PARALLEL_CALLS))[0], PARALLEL_RESULTS)

    async def second_turn():
        agent = Agent(model, tools=[weather])
        first = await agent.run(CALL)
        text, _ = await streamed(agent, 'And again?', message_history=first.all_messages())
        equal(text, greets(2, 'And again?'))

    async def structured():
        # pydantic-ai itself sends schemas only to models of Anthropic.
        outputs = [ToolOutput(City)] if api is anthropic else [ToolOutput(City), NativeOutput(City)]
        for output in outputs:
            equal((await Agent(model, output_type=output).run('Where?')).output, City(city='Paris'))

    return {
        'built-in model': built_in_model,
        'tool': tool,
        'parallel calls': parallel_calls,
        'second turn': second_turn,
        'object': structured,
    }


def clients():
    return {
        'pydantic-ai, OpenAI chats': situations(openai(OpenAIChatModel)),
        'pydantic-ai, OpenAI responses': situations(openai(OpenAIResponsesModel)),
        'pydantic-ai, Anthropic': situations(anthropic),
    }
