/** Fields of a response object other than its output. Shape: OpenAI API reference, "The response object". */
import type { Generation } from '../../../calls/generation.ts'
import type { ResponsesRequest } from './schema.ts'
import { renderTools } from './tools.ts'

/**
 * Creates a response object without output. Its fields have the order of the API reference.
 *
 * @param isStored whether the response is stored when it is complete
 */
export const toHead = ({ id, createdAt }: Generation, body: ResponsesRequest, isStored: boolean) => ({
  id: `resp_${id}`,
  object: 'response',
  created_at: Math.floor(createdAt.getTime() / 1000),
  completed_at: null,
  status: 'in_progress',
  background: false,
  error: null,
  incomplete_details: null,
  instructions: body.instructions ?? null,
  max_output_tokens: body.max_output_tokens ?? null,
  max_tool_calls: body.max_tool_calls ?? null,
  model: body.model,
  output: [] as readonly { readonly id: string }[],
  parallel_tool_calls: body.parallel_tool_calls ?? true,
  previous_response_id: body.previous_response_id ?? null,
  ...(body.conversation && { conversation: { id: body.conversation.id } }),
  presence_penalty: body.presence_penalty ?? 0,
  frequency_penalty: body.frequency_penalty ?? 0,
  reasoning: { effort: body.reasoning?.effort ?? null, summary: body.reasoning?.summary ?? null },
  service_tier: 'default',
  store: isStored,
  temperature: body.temperature ?? 1,
  text: { verbosity: 'medium', ...body.text, format: body.text?.format ?? { type: 'text' } },
  tool_choice: body.tool_choice ?? 'auto',
  tools: renderTools(body.tools),
  top_logprobs: body.top_logprobs ?? 0,
  top_p: body.top_p ?? 1,
  truncation: body.truncation ?? 'disabled',
  usage: null,
  user: body.user ?? null,
  safety_identifier: body.safety_identifier ?? null,
  prompt_cache_key: body.prompt_cache_key ?? null,
  metadata: body.metadata ?? {},
})
