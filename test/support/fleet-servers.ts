/** Small servers as the replicas of a fleet. Each answers with its own name. */
import type { EngineCall, GenerateEvent, GenerateRequest } from '@modelmount/core/engine'
import { type Fleet, type FleetOptions, fleetEngine } from '@modelmount/core/fleet'
import { onTestFinished } from 'vitest'
import { collect } from '../../packages/core/src/engine/events.ts'
import { chatDelta, sendEvents, UpstreamServer } from './upstream-server.ts'

export interface FleetServers {
  readonly fleet: Fleet
  readonly servers: readonly UpstreamServer[]
  /** Sends a chat and returns its text, which is the name of the replica. */
  ask(text: string, call?: Partial<EngineCall>): Promise<string>
  /** Numbers of the chats that each replica has got. */
  counts(): readonly number[]
}

/** Starts `count` servers, `a`, `b` and so on, and a fleet of them. The test ends both. */
export async function startFleet(count: number, options: Partial<FleetOptions> = {}): Promise<FleetServers> {
  const servers = await Promise.all(Array.from({ length: count }, () => UpstreamServer.start()))
  for (const [index, server] of servers.entries()) server.answer = answerWith(nameOf(index))
  const fleet = createFleet(servers, options)
  onTestFinished(async () => {
    await Promise.all(servers.map((server) => server.close()))
  })
  return {
    ...{ fleet, servers },
    ask: (text, call) => askFleet(fleet, [text], call),
    counts: () => servers.map((server) => chatsOf(server).length),
  }
}

/** Creates a further fleet of the same servers, as in another app process. */
export function createFleet(servers: readonly UpstreamServer[], options: Partial<FleetOptions> = {}): Fleet {
  const fleet = fleetEngine({
    ...{ replicas: servers.map(({ url }) => url), server: 'vllm', slowStartMs: 0 },
    ...options,
  })
  onTestFinished(() => fleet.close())
  return fleet
}

export const chatsOf = ({ requests }: UpstreamServer) =>
  requests.filter(({ path }) => path === '/v1/chat/completions')

export const nameOf = (index: number): string => String.fromCharCode('a'.charCodeAt(0) + index)

export const answerWith =
  (text: string): UpstreamServer['answer'] =>
  (response, { path }) => {
    if (path === '/health') response.end()
    else sendEvents(response, chatDelta({ content: text }), chatDelta({}, 'stop'), 'data: [DONE]\n\n').end()
  }

/** A chat whose turns alternate between the user and the assistant. */
export const toChat = (texts: readonly string[]): GenerateRequest => ({
  model: 'small',
  input: {
    kind: 'chat',
    messages: texts.map((text, index) => ({
      role: index % 2 === 0 ? 'user' : 'assistant',
      content: [{ type: 'text', text }],
    })),
  },
})

export const streamOf = (
  fleet: Fleet,
  texts: readonly string[],
  call: Partial<EngineCall> = {},
): AsyncIterable<GenerateEvent> =>
  fleet.generate(toChat(texts), { signal: new AbortController().signal, ...call })

export const askFleet = async (
  fleet: Fleet,
  texts: readonly string[],
  call?: Partial<EngineCall>,
): Promise<string> => (await collect(streamOf(fleet, texts, call))).text
