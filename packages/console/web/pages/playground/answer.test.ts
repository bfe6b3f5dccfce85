import { expect, test } from 'vitest'
import { addPart, speedOf, startAnswer, toMessage } from './answer.ts'
import type { AnswerPart } from './apis/api.ts'

/** @param parts with their times in ms */
const answerOf = (parts: readonly (readonly [at: number, part: AnswerPart])[]) =>
  parts.reduce((answer, [at, part]) => addPart(answer, part, at), startAnswer(1_000))

test('parts of text, reasoning and tool calls are joined', () => {
  const answer = answerOf([
    [1_010, { type: 'progress', progress: { phase: 'load', fraction: 0.5 } }],
    [1_100, { type: 'reasoning', text: 'Hm' }],
    [1_200, { type: 'text', text: 'Let me ' }],
    [1_300, { type: 'text', text: 'look.' }],
    [1_400, { type: 'tool-call', index: 2, call: { id: 'a', name: 'now' } }],
    [1_500, { type: 'tool-call', index: 2, call: { arguments: '{"zone":' } }],
    [1_600, { type: 'tool-call', index: 2, call: { arguments: '"UTC"}' } }],
  ])

  expect(answer.progress).toBeUndefined()
  expect(toMessage(answer)).toEqual({
    role: 'assistant',
    text: 'Let me look.',
    reasoning: 'Hm',
    toolCalls: [{ id: 'a', name: 'now', arguments: '{"zone":"UTC"}' }],
  })
})

test('an answer without content is no message', () => {
  expect(toMessage(startAnswer(0))).toBeUndefined()
})

test('the speed counts the tokens after the first one', () => {
  const usage = { inputTokens: 3, cachedTokens: 0, outputTokens: 11 }
  const answer = answerOf([
    [1_250, { type: 'text', text: 'a' }],
    [2_250, { type: 'text', text: 'b' }],
    [2_300, { type: 'usage', usage }],
  ])

  expect(speedOf(answer)).toEqual({ firstTokenMs: 250, tokensPerSecond: 10 })
  expect(speedOf(startAnswer(0))).toEqual({})
})
