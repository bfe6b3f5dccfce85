/** An engine whose events wait until the test allows them. */
import type { Engine, GenerateRequest } from '@modelmount/core/engine'

type PacedEngine<Base extends Engine> = Base & {
  /** Lets the paced calls generate this many more events, all together. */
  allow(events: number): void
}

/** @param isPaced whether the events of a request wait @default those of all requests */
export function pacedEngine<Base extends Engine>(
  base: Base,
  isPaced: (request: GenerateRequest) => boolean = () => true,
): PacedEngine<Base> {
  let allowed = 0
  const waiting: (() => void)[] = []
  const wake = (): void => {
    for (const resolve of waiting.splice(0)) resolve()
  }
  return {
    ...base,
    async *generate(request, call) {
      call.signal.addEventListener('abort', wake, { once: true })
      for await (const event of base.generate(request, call)) {
        while (isPaced(request) && allowed === 0 && !call.signal.aborted)
          await new Promise<void>((resolve) => {
            waiting.push(resolve)
          })
        if (call.signal.aborted) return
        if (isPaced(request)) allowed--
        yield event
      }
    },
    allow: (events) => {
      allowed += events
      wake()
    },
  }
}
