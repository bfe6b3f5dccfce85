/** Records the content of answers, for the diagnostics channel `modelmount:call:content`. */
import type { AnswerContent } from '../../diagnostics/events.ts'
import type { GenerateEvent, ToolCall } from '../../engine/events.ts'
import type { Call } from '../call.ts'

/** Adds to the mappers of the call. Returns the answers, which grow with each event that the reader gets. */
export function recordAnswers(call: Call): readonly AnswerContent[] {
  const answers: AnswerRecord[] = []
  const { createTransform } = call
  call.createTransform = (index) => {
    const transform = createTransform?.(index)
    const answer = new AnswerRecord()
    answers[index] = answer
    return (event) => {
      const events = transform?.(event) ?? [event]
      for (const one of events) answer.add(one)
      return events
    }
  }
  return answers
}

class AnswerRecord implements AnswerContent {
  text = ''
  reasoning = ''
  readonly toolCalls: { -readonly [Key in keyof ToolCall]: ToolCall[Key] }[] = []

  add(event: GenerateEvent): void {
    if (event.type === 'text' || event.type === 'reasoning') this[event.type] += event.text
    else if (event.type === 'tool-call')
      this.toolCalls.push({ id: event.id, name: event.name, arguments: '' })
    else if (event.type === 'tool-arguments') {
      const call = this.toolCalls[event.index]
      if (call) call.arguments += event.json
    }
  }
}
