/** The models of this app. Next.js loads this file again after each change and for each route, so they share one `Llm`. */
import { createLlm } from '@modelmount/core'

globalThis.llm ??= createLlm({ auth: 'host' })

export const llm = await globalThis.llm

/** @param {Request} request Replace this by the session of your app. */
export const findUser = (request) => /\bsession=([\w-]{1,40})/.exec(request.headers.get('cookie') ?? '')?.[1]
