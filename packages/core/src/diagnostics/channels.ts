/** Channels of `node:diagnostics_channel`. Without a subscriber, an event is neither built nor published. */
import { type Channel, channel } from 'node:diagnostics_channel'
import type { DiagnosticEvents } from './events.ts'

type Name = keyof DiagnosticEvents

const channels = new Map<Name, Channel>()

function channelOf(name: Name): Channel {
  const known = channels.get(name) ?? channel(name)
  channels.set(name, known)
  return known
}

export const hasSubscribers = (name: Name): boolean => channelOf(name).hasSubscribers

/** @param build called only if the channel has subscribers */
export function publish<N extends Name>(name: N, build: () => DiagnosticEvents[N]): void {
  const target = channelOf(name)
  if (target.hasSubscribers) target.publish(build())
}

/** Functions that receive the events of some channels. */
export type DiagnosticListeners = { readonly [N in Name]?: (event: DiagnosticEvents[N]) => void }

/**
 * Subscribes to channels, typed by their names, and returns a function that ends the subscription. A listener
 * that throws does not disturb the call: Node.js reports its error as an uncaught exception.
 *
 * @param llm object of `createLlm()`. Events of other such objects in the process are left out
 */
export function subscribe(llm: object, listeners: DiagnosticListeners): () => void {
  const subscriptions = Object.entries(listeners).map(([name, listener]) => {
    const onEvent = (event: unknown): void => {
      if ((event as { readonly llm: object }).llm === llm) (listener as (event: unknown) => void)(event)
    }
    const target = channelOf(name as Name)
    target.subscribe(onEvent)
    return () => target.unsubscribe(onEvent)
  })
  return () => {
    for (const unsubscribe of subscriptions) unsubscribe()
  }
}
