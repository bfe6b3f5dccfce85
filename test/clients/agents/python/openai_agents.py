"""OpenAI's Agents SDK on both APIs."""

from agents import (
    Agent,
    AsyncOpenAI,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from pydantic import BaseModel
from questions import CALL, INSTRUCTED, PARALLEL_CALLS, PARALLEL_RESULTS, RESULT, TINY, equal, greets, weather

# Traces would go to OpenAI.
set_tracing_disabled(True)


class City(BaseModel):
    city: str


def situations(api):
    def agent(url=INSTRUCTED, **more):
        model = api(model='tiny', openai_client=AsyncOpenAI(base_url=f'{url}/v1', api_key='any'))
        return Agent(name='helper', instructions='Be brief.', model=model, **more)

    tools = {'tools': [function_tool(weather)]}

    async def built_in_model():
        assert (await Runner.run(agent(TINY), 'Hello')).final_output

    async def tool():
        equal((await Runner.run(agent(**tools), CALL)).final_output, RESULT)

    async def parallel_calls():
        streamed = Runner.run_streamed(agent(**tools), PARALLEL_CALLS)
        async for _ in streamed.stream_events():
            pass
        equal(streamed.final_output, PARALLEL_RESULTS)

    async def second_turn():
        first = await Runner.run(agent(**tools), CALL)
        again = [*first.to_input_list(), {'role': 'user', 'content': 'And again?'}]
        streamed = Runner.run_streamed(agent(**tools), again)
        async for _ in streamed.stream_events():
            pass
        equal(streamed.final_output, greets(2, 'And again?'))

    async def structured():
        equal((await Runner.run(agent(output_type=City), 'Where?')).final_output, City(city='Paris'))

    return {
        'built-in model': built_in_model,
        'tool': tool,
        'parallel calls': parallel_calls,
        'second turn': second_turn,
        'object': structured,
    }


def clients():
    return {
        'openai-agents, responses': situations(OpenAIResponsesModel),
        'openai-agents, chats': situations(OpenAIChatCompletionsModel),
    }
