"""LangChain on all three APIs, with the built-in model. `test_standard.py` has its other tests."""

from langchain_anthropic import ChatAnthropic
from langchain_ollama import ChatOllama
from langchain_openai import ChatOpenAI
from questions import TINY


def situations(model):
    async def built_in_model():
        assert (await model.ainvoke('Hello')).text
        assert ''.join([chunk.text async for chunk in model.astream('Hello')])

    return {'built-in model': built_in_model}


def openai(**more):
    return ChatOpenAI(model='tiny', base_url=f'{TINY}/v1', api_key='any', **more)


def clients():
    return {
        'langchain-openai, chats': situations(openai()),
        'langchain-openai, responses': situations(openai(use_responses_api=True)),
        'langchain-anthropic': situations(ChatAnthropic(model='tiny', base_url=TINY, api_key='any')),
        'langchain-ollama': situations(ChatOllama(model='tiny', base_url=TINY)),
    }
