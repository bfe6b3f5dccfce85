"""LangChain's standard tests for its classes of all three APIs."""

import os

from langchain_anthropic import ChatAnthropic
from langchain_ollama import ChatOllama
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests

URL = os.environ['INSTRUCTED_URL']


class StandardTests(ChatModelIntegrationTests):
    @property
    def model_override_value(self):
        return 'eager-2'

    @property
    def supports_json_mode(self):
        return True


class TestOpenAIChats(StandardTests):
    chat_model_class = ChatOpenAI
    chat_model_params = {'model': 'eager', 'base_url': f'{URL}/v1', 'api_key': 'any', 'stream_usage': True}


class TestOpenAIResponses(StandardTests):
    chat_model_class = ChatOpenAI
    chat_model_params = {'model': 'eager', 'base_url': f'{URL}/v1', 'api_key': 'any', 'use_responses_api': True}


class TestAnthropic(StandardTests):
    chat_model_class = ChatAnthropic
    chat_model_params = {'model': 'eager', 'base_url': URL, 'api_key': 'any'}

    @property
    def supports_anthropic_inputs(self):
        return True


class TestOllama(StandardTests):
    chat_model_class = ChatOllama
    chat_model_params = {'model': 'eager', 'base_url': URL}
