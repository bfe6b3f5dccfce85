import { createLlm } from '@modelmount/core'

// Next.js loads this file again after each change and for each route. They share one `Llm`.
globalThis.llm ??= createLlm({ auth: 'host' })

export const llm = await globalThis.llm
