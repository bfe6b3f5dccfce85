/** The cases of llama.cpp's tests that do not run, or that Modelmount does not pass, and the reasons. */

/** Files, functions or cases of features that Modelmount does not offer. */
export const leftOut: Readonly<Record<string, string>> = {
  'test_compat_gcp.py': 'the API of Google Cloud',
  'test_infill.py': '`/infill`. `suffix` of `/v1/completions` fills gaps',
  'test_kv_keep_only_active.py': 'log lines about slots',
  'test_lora.py': '`/lora-adapters`. An adapter is part of a model',
  'test_mcp_servers.py': 'a client of MCP servers',
  'test_metrics.py': '`/metrics`',
  'test_proxy.py': 'a proxy for web pages',
  'test_router.py':
    '`/models/load` and other routes of the router. Modelmount loads models when they are called',
  'test_sleep.py': '`/props`',
  'test_slot_save.py': '`/slots`',
  'test_speculative.py': 'speculative decoding',
  'test_stream.py': 'streams that continue after the client has left',
  'test_tools_builtin.py': 'tools that the server runs',
  'test_vision_api.py': 'images',
  'test_basic.py::test_load_split_model': 'a model that has to be downloaded',
  'test_basic.py::test_no_ui': 'a web page',
  'test_basic.py::test_server_model_aliases_and_tags': 'tags of models',
  'test_basic.py::test_server_multiple_addresses': 'addresses are those of the host app',
  'test_basic.py::test_server_props': '`/props`',
  'test_basic.py::test_server_slots': '`/slots`',
  'test_basic.py::test_server_start_simple': '`/health`',
  'test_compat_anthropic.py::test_anthropic_tool_result_with_image': 'images',
  'test_compat_anthropic.py::test_anthropic_vision_base64_with_multimodal_model': 'images',
  'test_compat_anthropic.py::test_anthropic_vision_format_accepted': 'images',
  'test_completion.py::test_cancel_request': '`/slots`',
  'test_completion.py::test_completion_response_fields': '`response_fields` and `generation_settings`',
  'test_completion.py::test_n_probs_post_backend_sampling': 'probabilities after sampling',
  'test_completion.py::test_n_probs_post_sampling': 'probabilities after sampling',
  'test_ctx_shift.py::test_ctx_shift_enabled': 'shifting of the context',
  'test_embedding.py::test_embedding_pooling_none': 'vectors of single tokens',
  'test_ignore_eos.py': '`generation_settings`',
  'test_security.py::test_access_public_endpoint': '`/health`',
  'test_security.py::test_access_static_assets_without_api_key': 'a web page',
  'test_security.py::test_cors_origins_defaults_to_localhost_with_tools_enabled':
    'tools that the server runs',
  'test_security.py::test_cors_proxy_only_forwards_explicit_proxy_headers': 'a proxy for web pages',
  'test_security.py::test_local_media_file': 'images',
}

/** Cases that Modelmount does not pass. */
export const differences: Readonly<Record<string, string>> = {
  'test_chat_completion.py::test_chat_template_assistant_prefill[prefill1-Wh\\n\\nill]':
    'Text parts are joined with one line break. llama-server joins them with two where the model continues them, else with one.',
  'test_chat_completion.py::test_invalid_chat_completion_req[messages7]':
    'Consecutive messages of the assistant are one message, as in the API of Anthropic.',
  'test_compat_anthropic.py::test_anthropic_empty_messages':
    'Empty messages are a 400, as in the API of Anthropic.',
  'test_compat_anthropic.py::test_anthropic_stop_sequences':
    'A stop sequence of white space is a 400, as in the API of Anthropic.',
  'test_compat_oai_responses.py::test_responses_stream_with_llama_telemetry':
    "A response that the token limit cuts off ends with `response.incomplete`, as in OpenAI's API.",
  'test_completion.py::test_n_probs': 'Log probabilities have no token ids.',
  'test_completion.py::test_n_probs_stream': 'Log probabilities have no token ids.',
  'test_embedding.py::test_embedding_mixed_input[-False]': "An empty text is a 400, as in OpenAI's API.",
  'test_embedding.py::test_embedding_mixed_input[input3-False]':
    "An input of texts and token ids is a 400, as in OpenAI's API.",
  'test_embedding.py::test_embedding_mixed_input[input7-True]':
    "An input of texts and token ids is a 400, as in OpenAI's API.",
  'test_security.py::test_cors_options[origin-Access-Control-Allow-Credentials-true]':
    'Pages of other origins cannot send cookies. The host app allows that with its own `cors()`.',
}
