/** A session like those of Codex with the built-in model, and custom tools whose grammars it must keep to. */
import { readEvents } from '@modelmount/core/testing'
import { expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { type Served, serve } from '../support/served.ts'
import '../support/own-run-folder.ts'
import { session, tools } from './codex-session.ts'

const start = (): Promise<Served> => serve({ models: emptyFolder(), local: { contextSize: 4096 } })

const question = { model: 'tiny', input: 'Write the file a.txt.', temperature: 0 }

interface Called {
  readonly status: string
  readonly output: readonly { readonly type: string; readonly name: string; readonly input: string }[]
}

test('each request of a session is answered, also with its results, images and namespaces', async () => {
  const { post } = await start()

  for (const { name, body } of session) {
    const response = await post('/v1/responses', { ...body, max_output_tokens: 100 })
    const types: string[] = []
    for await (const { event } of readEvents(await response.text())) types.push(event ?? '')

    expect([name, response.status, types[0]]).toEqual([name, 200, 'response.created'])
    expect([name, types.at(-1)]).toEqual([name, expect.stringMatching(/^response\.(completed|incomplete)$/)])
  }
}, 60_000)

test('the text of a custom tool matches its grammar', async () => {
  const { post } = await start()
  const call = async (tool: object, name: string): Promise<Called> => {
    const body = { ...question, tools: [tool], tool_choice: { type: 'custom', name }, max_output_tokens: 200 }
    return (await (await post('/v1/responses', body)).json()) as Called
  }
  const format = { type: 'grammar', syntax: 'regex', definition: '[A-Z]{3}-[0-9]{2}' }

  const ticket = await call({ type: 'custom', name: 'ticket', format }, 'ticket')
  const patch = await call(tools[2] as object, 'apply_patch')

  expect(ticket).toMatchObject({
    status: 'completed',
    output: [
      { type: 'custom_tool_call', name: 'ticket', input: expect.stringMatching(/^[A-Z]{3}-[0-9]{2}$/) },
    ],
  })
  const [{ input = '' } = {}] = patch.output
  expect(input).toMatch(/^\*\*\* Begin Patch\n\*\*\* (?:Add|Delete|Update) File: ./)
}, 60_000)

test('an expression that cannot be enforced is a 400 that names the grammar of the tool', async () => {
  const { post } = await start()
  const format = { type: 'grammar', syntax: 'regex', definition: '(?=a)b' }
  const inner = [{ type: 'custom', name: 'ticket', format }]

  for (const [param, list] of [
    ['tools[1].format.definition', [{ type: 'mcp' }, ...inner]],
    ['tools[0].tools[0].format.definition', [{ type: 'namespace', name: 'mcp__a', tools: inner }]],
  ] as const) {
    const response = await post('/v1/responses', { ...question, tools: list, tool_choice: 'required' })

    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { param } })
  }
}, 60_000)
