/**
 * Tools that Anthropic's API defines and the client runs. Models of this server were not trained with these
 * tools, so the prompt contains their schemas.
 * Shape: Anthropic guides, "Bash tool", "Text editor tool", "Memory tool".
 */
interface ClientTool {
  readonly name: string
  readonly description: string
  readonly input_schema: object
}

const text = (description: string): object => ({ type: 'string', description })
const line = (description: string): object => ({ type: 'integer', description })
const tool = (
  name: string,
  description: string,
  properties: object,
  required: readonly string[],
): ClientTool => ({ name, description, input_schema: { type: 'object', properties, required } })

const bash = tool(
  'bash',
  'Runs a command in a bash shell that keeps its state between calls.',
  {
    command: text('The command to run.'),
    restart: { type: 'boolean', description: 'Starts the shell anew.' },
  },
  ['command'],
)

/** @param inserted name of the field that contains the text for the command `insert` */
const fileFields = (inserted: string) => ({
  path: text('The path of the file or folder.'),
  file_text: text('For `create`: the content of the file.'),
  old_str: text('For `str_replace`: the text to replace, which stands in the file once.'),
  new_str: text('For `str_replace`: the text that replaces it.'),
  insert_line: line('For `insert`: the line after which the text goes, 0 for the beginning.'),
  [inserted]: text('For `insert`: the text to insert; for `str_replace`: what replaces the old one.'),
  view_range: {
    type: 'array',
    items: { type: 'integer' },
    description: 'For `view`: the first and the last line, from 1; -1 for the end.',
  },
})
const command = (...names: readonly string[]): object => ({
  type: 'string',
  enum: names,
  description: 'What to do.',
})

const editor = (name: string, inserted: string, ...more: readonly string[]): ClientTool =>
  tool(
    name,
    'Views, creates and edits text files.',
    { command: command('view', 'create', 'str_replace', 'insert', ...more), ...fileFields(inserted) },
    ['command', 'path'],
  )

const memory = tool(
  'memory',
  'Keeps notes between conversations, as files in the folder /memories.',
  {
    command: command('view', 'create', 'str_replace', 'insert', 'delete', 'rename'),
    ...fileFields('insert_text'),
    old_path: text('For `rename`: the path that the file has.'),
    new_path: text('For `rename`: the path that it gets.'),
  },
  ['command'],
)

export const clientTools: ReadonlyMap<string, ClientTool> = new Map([
  ['bash_20250124', bash],
  ['text_editor_20250124', editor('str_replace_editor', 'new_str', 'undo_edit')],
  ['text_editor_20250429', editor('str_replace_based_edit_tool', 'new_str')],
  ['text_editor_20250728', editor('str_replace_based_edit_tool', 'insert_text')],
  ['memory_20250818', memory],
])
