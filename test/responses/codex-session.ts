/** Requests of a session like those of Codex: their fields, tools and items, with short texts. */

/** The grammar of patches, in the Lark syntax. */
const patchGrammar = `start: begin_patch hunk+ end_patch
begin_patch: "*** Begin Patch" LF
end_patch: "*** End Patch" LF?

hunk: add_hunk | delete_hunk | update_hunk
add_hunk: "*** Add File: " filename LF add_line+
delete_hunk: "*** Delete File: " filename LF
update_hunk: "*** Update File: " filename LF change_move? change?

filename: /(.+)/
add_line: "+" /(.*)/ LF -> line

change_move: "*** Move to: " filename LF
change: (change_context | change_line)+ eof_line?
change_context: ("@@" | "@@ " /(.+)/) LF
change_line: ("+" | "-" | " ") /(.*)/ LF
eof_line: "*** End of File" LF

%import common.LF
`

const object = (properties: object, required: readonly string[]) => ({
  ...{ type: 'object', properties, required, additionalProperties: false },
})

export const tools = [
  {
    ...{ type: 'function', name: 'exec_command', description: 'Runs a command.', strict: false },
    parameters: object({ cmd: { type: 'string' }, workdir: { type: 'string' } }, ['cmd']),
  },
  {
    ...{ type: 'function', name: 'update_plan', description: 'Updates the plan.', strict: false },
    parameters: object({ plan: { type: 'array', items: object({ step: { type: 'string' } }, ['step']) } }, [
      'plan',
    ]),
  },
  {
    ...{ type: 'custom', name: 'apply_patch', description: 'Edits files. Do not wrap the patch in JSON.' },
    format: { type: 'grammar', syntax: 'lark', definition: patchGrammar },
  },
  { type: 'web_search', external_web_access: false },
  { type: 'tool_search', execution: 'client', description: 'Finds tools.', parameters: object({}, []) },
  {
    ...{ type: 'namespace', name: 'mcp__files', description: 'Tools in the mcp__files namespace.' },
    tools: [
      {
        ...{
          type: 'function',
          name: 'read',
          description: 'Reads a file.',
          strict: false,
          defer_loading: true,
        },
        parameters: object({ path: { type: 'string' } }, ['path']),
      },
    ],
  },
]

const message = (role: string, text: string) => ({
  ...{ type: 'message', role, content: [{ type: 'input_text', text }] },
})

const patch = '*** Begin Patch\n*** Add File: a.txt\n+Hello\n*** End Patch\n'

const common = {
  ...{ model: 'tiny', instructions: 'You are a coding agent.', tools, tool_choice: 'auto' },
  ...{ parallel_tool_calls: true, reasoning: { effort: 'low', summary: 'auto' }, store: false, stream: true },
  ...{
    include: ['reasoning.encrypted_content'],
    prompt_cache_key: '0199-session',
    text: { verbosity: 'low' },
  },
  client_metadata: { 'x-codex-installation-id': '1' },
}

const begin = [
  message('developer', '<permissions>Read only.</permissions>'),
  message('user', '<environment_context><cwd>/work</cwd></environment_context>'),
  {
    ...{ type: 'message', role: 'user' },
    content: [
      { type: 'input_text', text: 'Write a.txt, as in this picture.' },
      { type: 'input_image', image_url: 'data:image/png;base64,AA==', detail: 'high' },
    ],
  },
]

const calls = [
  { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm.' }], encrypted_content: 'gAAAAABother' },
  { type: 'function_call', name: 'exec_command', arguments: '{"cmd":"ls"}', call_id: 'call_1' },
  {
    ...{ type: 'function_call', name: 'read', namespace: 'mcp__files', arguments: '{"path":"a"}' },
    call_id: 'call_2',
  },
  { type: 'custom_tool_call', status: 'completed', call_id: 'call_3', name: 'apply_patch', input: patch },
  { type: 'function_call_output', call_id: 'call_1', output: 'a.txt' },
  {
    ...{ type: 'function_call_output', call_id: 'call_2' },
    output: [
      { type: 'input_text', text: 'Hello' },
      { type: 'input_image', image_url: 'data:image/png;base64,AA==' },
    ],
  },
  { type: 'custom_tool_call_output', call_id: 'call_3', output: 'Done.' },
]

/** The requests of the session, in order. */
export const session = [
  { name: 'warm-up', body: { ...common, input: [], generate: false } },
  { name: 'first turn', body: { ...common, input: begin } },
  { name: 'results of parallel calls', body: { ...common, input: [...begin, ...calls] } },
  {
    name: 'resumed',
    body: { ...common, input: [...begin, ...calls, message('user', 'And now?')] },
  },
]
