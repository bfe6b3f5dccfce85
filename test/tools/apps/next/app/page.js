import { llm } from '../llm.js'

export const dynamic = 'force-dynamic'

export default async function Page() {
  const { text } = await llm.chat('Hello', { model: 'tiny', temperature: 0 })
  return <p>{text}</p>
}
