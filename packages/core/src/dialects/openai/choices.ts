/** Choices: several answers to one prompt, which run at the same time. */
import { addTokenUsage, withoutPrompt } from '../../accounts/usage/call-usage.ts'
import type { GroupOptions, LlmClient } from '../../calls/client.ts'
import type { Generation } from '../../calls/generation.ts'
import { collect, type GenerateEvent, type GenerateResult, type TokenUsage } from '../../engine/events.ts'
import type { GenerateRequest } from '../../engine/request.ts'
import { runConcurrently } from '../../util/run-concurrently.ts'

/** OpenAI accepts 128. More choices than slots wait for each other, and hold memory for their answers. */
export const maxChoices = 8

export interface FinishedChoice {
  readonly generation: Generation
  readonly answer: GenerateResult
}

/**
 * Returns a request for each choice. Each choice has a separate seed. That of the first choice is the seed of the request,
 * and only the first one reports progress, since all choices share the prompt.
 */
export const repeatRequest = (request: GenerateRequest, count: number): readonly GenerateRequest[] =>
  Array.from({ length: count }, (_item, index) => {
    if (index === 0) return request
    const { returnProgress: _, ...others } = request
    const { seed } = request.sampling ?? {}
    const ownSeed = typeof seed === 'number' ? seed + index : 'random'
    return { ...others, sampling: { ...request.sampling, seed: ownSeed } }
  })

/** Starts the choices of one prompt. Resolves when the first one has begun. */
export async function startChoices(
  llm: LlmClient,
  request: GenerateRequest,
  count: number,
  options: GroupOptions,
): Promise<readonly [Generation, ...Promise<Generation>[]]> {
  if (count === 1) return [await llm.generate(request, options)]
  const group = await llm.generateGroup(repeatRequest(request, count), {
    ...options,
    answersPerPrompt: count,
  })
  const [first, ...others] = group.startInOrder()
  return [await (first as Promise<Generation>), ...others]
}

/** Sums the usage of answers. Those to one prompt follow each other, and the prompt counts once. @param perPrompt default all */
export const sumUsage = (usages: readonly TokenUsage[], perPrompt = usages.length): TokenUsage =>
  usages.map((usage, index) => (index % perPrompt === 0 ? usage : withoutPrompt(usage))).reduce(addTokenUsage)

/** Resolves with the finished choices, in order. Rejects with the first error. */
export const collectChoices = (
  choices: readonly (Generation | Promise<Generation>)[],
): Promise<readonly FinishedChoice[]> =>
  Promise.all(
    choices.map(async (choice) => {
      const generation = await choice
      return { generation, answer: await collect(generation) }
    }),
  )

/** Maximum number of concurrent answers in one request. It equals a model's default number of slots. */
const maxConcurrent = 4

/**
 * Starts and collects answers, some at a time, in the order of their indices. The first failure cancels the others.
 *
 * @param start starts the answer with this index
 */
export async function collectConcurrently(
  count: number,
  start: (index: number, signal: AbortSignal) => Promise<Generation>,
  clientSignal: AbortSignal,
): Promise<readonly FinishedChoice[]> {
  const finished: FinishedChoice[] = []
  const indices = Array.from({ length: count }, (_, index) => index)
  await runConcurrently(indices, maxConcurrent, clientSignal, async (index, _, signal) => {
    const generation = await start(index, signal)
    finished[index] = { generation, answer: await collect(generation) }
  })
  clientSignal.throwIfAborted()
  return finished
}

export interface ChoiceEvent {
  readonly index: number
  readonly generation: Generation
  readonly event: GenerateEvent
}

/**
 * Merges the events of choices as they come. Python's client expects that the choices appear in the order of their
 * indices. So each choice is read from when the one before it has begun its output.
 */
export async function* mergeChoices(
  choices: readonly (Generation | Promise<Generation>)[],
): AsyncGenerator<ChoiceEvent> {
  const opened: Promise<{
    readonly generation: Generation
    readonly events: AsyncIterator<GenerateEvent>
  }>[] = []
  const open = (index: number) => {
    opened[index] ??= Promise.resolve(choices[index] as Generation).then((generation) => ({
      generation,
      events: generation[Symbol.asyncIterator](),
    }))
    return opened[index]
  }
  /** Resolves without an event when the choice has ended. */
  const readFrom = async (index: number): Promise<{ index: number } & Partial<ChoiceEvent>> => {
    const { generation, events } = await open(index)
    const { value: event, done } = await events.next()
    return done ? { index } : { index, generation, event }
  }
  const pending = new Map([[0, readFrom(0)]])
  try {
    while (pending.size > 0) {
      const { index, generation, event } = await Promise.race(pending.values())
      pending.delete(index)
      if (generation && event) {
        yield { index, generation, event }
        pending.set(index, readFrom(index))
      }
      const next = index + 1
      const isEvaluated = event?.type !== 'start' && event?.type !== 'progress'
      if (isEvaluated && next < choices.length && !opened[next]) pending.set(next, readFrom(next))
    }
  } finally {
    for (const read of pending.values()) read.catch(() => {})
    for (const index of choices.keys())
      void open(index).then(
        ({ events }) => events.return?.(),
        () => {},
      )
  }
}
