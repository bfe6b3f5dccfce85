/**
 * Renders templates of popular models, and compares the results with Go. Go 1.26's `text/template` generated
 * `expected.json` from `conversations.json` and the templates of `@huggingface/ollama-utils` 0.0.18.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { parseGoTemplate } from '../../packages/core/src/template/go-template/index.ts'
import { parseTree } from '../../packages/core/src/template/go-template/parse.ts'
import { runTree } from '../../packages/core/src/template/go-template/run.ts'
import {
  fromJson,
  GoMap,
  GoStruct,
  type GoValue,
} from '../../packages/core/src/template/go-template/values.ts'
import { detectFamily } from '../../packages/core/src/template/tool-calls/detect.ts'

interface Conversation {
  readonly System: string
  readonly Prompt: string
  readonly Response: string
  readonly Suffix: string
  readonly Messages: readonly {
    readonly role: string
    readonly content: string
    readonly tool_calls?: readonly {
      readonly Function: { readonly Name: string; readonly Arguments: object }
    }[]
  }[]
  readonly Tools: readonly {
    readonly type: string
    readonly Function: { readonly Name: string; readonly Description: string; readonly Parameters: object }
  }[]
}
type Expected = { readonly out: string } | { readonly err: string }

const read = (name: string): unknown => JSON.parse(readFileSync(new URL(name, import.meta.url), 'utf8'))
const conversations = read('./conversations.json') as readonly Conversation[]
const expected = read('./expected.json') as readonly (readonly Expected[])[]

/** Reads the templates from the source of the package, which does not export them. */
function templatesOfModels(): readonly { readonly model: string; readonly template: string }[] {
  const entry = fileURLToPath(import.meta.resolve('@huggingface/ollama-utils'))
  const source = readFileSync(new URL('../src/chat-template-automap.ts', `file://${entry}`), 'utf8')
  const list = runInNewContext(source.slice(source.indexOf('= [') + 1)) as readonly {
    readonly model: string
    readonly ollama: { readonly template: string }
  }[]
  return list.map(({ model, ollama }) => ({ model, template: ollama.template }))
}

const field = (value: GoValue, key?: string) => ({ value, ...(key !== undefined && { key }) })

/** The data of the Go program that generated `expected.json`. There, parameters are plain maps. */
const toData = ({ Messages, Tools, ...texts }: Conversation): GoMap =>
  new GoMap(
    Object.entries({
      ...texts,
      ...{ Think: false, IsThinkSet: false, ThinkLevel: '' },
      Messages: Messages.map(
        ({ role, content, tool_calls: calls = [] }) =>
          new GoStruct({
            ...{ Role: field(role), Content: field(content), ToolName: field('') },
            ...{ Thinking: field(''), ToolCallID: field(''), Images: field([]) },
            ToolCalls: field(
              calls.map(
                ({ Function: { Name, Arguments } }) =>
                  new GoStruct({
                    Function: field(
                      new GoStruct({
                        Name: field(Name, 'name'),
                        Arguments: field(fromJson(Arguments, { isJson: true }), 'arguments'),
                      }),
                      'function',
                    ),
                  }),
              ),
            ),
          }),
      ),
      Tools: Tools.map(
        ({ type, Function: { Name, Description, Parameters } }) =>
          new GoStruct(
            {
              Type: field(type, 'type'),
              Function: field(
                new GoStruct({
                  Name: field(Name, 'name'),
                  Description: field(Description, 'description'),
                  Parameters: field(fromJson(Parameters), 'parameters'),
                }),
                'function',
              ),
            },
            { isJson: true },
          ),
      ),
    }),
  )

function render(template: string, conversation: Conversation): Expected {
  try {
    return { out: runTree(parseTree(template), toData(conversation), { now: new Date(2026, 10, 21) }) }
  } catch (cause) {
    return { err: (cause as Error).message }
  }
}

test('every template renders as in Go, and fails where Go fails', () => {
  const templates = templatesOfModels()
  expect(templates).toHaveLength(expected.length)

  const others = templates.flatMap(({ model, template }, at) =>
    conversations.flatMap((conversation, index) => {
      const wanted = expected[at]?.[index] as Expected
      const found = render(template, conversation)
      const isSame = 'err' in wanted ? 'err' in found : 'out' in found && found.out === wanted.out
      return isSame ? [] : [{ model, index, wanted, found }]
    }),
  )

  expect(others).toEqual([])
})

test.each([
  ['qwen2.5:0.5b', 'hermes'],
  ['qwen3:0.6b', 'hermes'],
  ['hermes3:70b', 'hermes'],
  ['command-r7b:7b', 'hermes'],
  ['llama3.1:8b', 'llama3'],
  ['llama3.2:3b', 'llama3'],
  ['mistral-small:24b', 'mistral'],
  ['granite3.3:2b', 'granite'],
  ['phi4-mini:3.8b', 'granite'],
  ['deepseek-v3.1:latest', 'deepseek'],
  ['gemma2:latest', 'generic'],
  ['nemotron-mini:4b', 'generic'],
])('the template of %s has the tool call syntax %s', (name, family) => {
  const { template = '' } = templatesOfModels().find(({ model }) => model === `library/${name}`) ?? {}

  expect(detectFamily(template)).toBe(family)
})

test('detects which templates use the suffix, thinking or tools', () => {
  const uses = templatesOfModels().map(
    ({ model, template }) => [model, parseGoTemplate(template).features] as const,
  )
  const namesWith = (has: (use: (typeof uses)[number][1]) => unknown): string[] => [
    ...new Set(uses.flatMap(([model, use]) => (has(use) ? [model.replace(/^library\/|:.*$/g, '')] : []))),
  ]

  expect(namesWith(({ suffix }) => suffix).sort()).toEqual(
    ['deepseek-coder-v2', 'deepseek-v2.5', 'granite-code', 'qwen2.5-coder'].sort(),
  )
  expect(namesWith(({ thinking }) => thinking).sort()).toEqual(['deepseek-r1', 'deepseek-v3.1', 'qwen3-next'])
  expect(namesWith(({ tools }) => tools)).toContain('llama3.1')
  expect(namesWith(({ tools }) => tools)).not.toContain('gemma2')
})
