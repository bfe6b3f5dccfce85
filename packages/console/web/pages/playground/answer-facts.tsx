/** Speed and tokens of an answer. */
import { formatCount } from '../../format/numbers.ts'
import { formatDuration } from '../../format/time.ts'
import { type Answer, speedOf } from './answer.ts'

export function AnswerFacts({ answer }: { readonly answer: Answer }) {
  const { usage, finishReason } = answer
  const { firstTokenMs, tokensPerSecond } = speedOf(answer)
  const facts = [
    firstTokenMs !== undefined && (['First token', formatDuration(firstTokenMs)] as const),
    tokensPerSecond !== undefined && (['Speed', `${formatSpeed(tokensPerSecond)} tokens/s`] as const),
    usage && (['Prompt', `${formatCount(usage.inputTokens)} tokens`] as const),
    usage && (['From the cache', `${formatCount(usage.cachedTokens)} tokens`] as const),
    usage?.cacheWriteTokens !== undefined &&
      (['Written to the cache', `${formatCount(usage.cacheWriteTokens)} tokens`] as const),
    usage && (['Answer', `${formatCount(usage.outputTokens)} tokens`] as const),
    ['End', finishReason ?? 'stopped'] as const,
  ].filter((fact) => fact !== false && fact !== undefined)
  return (
    <dl class="answer-facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

const formatSpeed = (perSecond: number): string =>
  perSecond < 100 ? perSecond.toFixed(1) : formatCount(Math.round(perSecond))
