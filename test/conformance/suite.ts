/** Every requirement, checked on one way to mount the routes: an adapter brings only that way. */
import type { RequestListener } from 'node:http'
import { createLlm, type Engine, type Llm } from '@modelmount/core'
import { describe, expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { listen } from '../support/listen.ts'
import { checks } from './openai.ts'
import { type RequirementId, requirements } from './requirements.ts'

/** Makes a handler for Node's own server. Paths that no route has are to be answered, not passed on. */
export type Mount = (llm: Llm) => RequestListener

/** Starts a server around the mounted routes, until the test is over, and resolves with its URL. */
export type Serve = (engine: Engine, inFront?: InFront) => Promise<string>

/** What a host puts before the mounted routes. */
export type InFront = (mounted: RequestListener) => RequestListener

export type Check = (serve: Serve) => Promise<void>

export function conformanceSuite(name: string, mount: Mount): void {
  describe(`routes mounted in ${name}`, () => {
    const models = emptyFolder()

    const serve: Serve = async (engine, inFront = (mounted) => mounted) => {
      const llm = await createLlm({ engine, models })
      const { url, close } = await listen(inFront(mount(llm)))
      onTestFinished(async () => {
        await close()
        await llm.close()
      })
      return url
    }

    test('every requirement has one check, and every check a requirement', () => {
      expect(Object.keys(checks).sort()).toEqual(Object.keys(requirements).sort())
    })

    for (const [id, { behavior }] of Object.entries(requirements)) {
      test(`${id}: ${behavior}`, () => checks[id as RequirementId](serve))
    }
  })
}
