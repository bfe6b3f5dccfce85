/** The messages, the answer that grows, and what it cost. */
import { useEffect, useRef } from 'preact/hooks'
import { Bar } from '../../components/bar.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { formatCount, formatPercent } from '../../format/numbers.ts'
import { type Answer, toolCallsOf } from './answer.ts'
import { AnswerFacts } from './answer-facts.tsx'
import type { Message, Progress, ToolCall } from './apis/api.ts'
import type { Chat, Turn } from './chat.ts'

export interface ConversationProps extends Pick<Chat, 'turns'> {
  readonly running: Chat['running'] | undefined
}

export function Conversation({ turns, running }: ConversationProps) {
  const end = useFollow(running?.answer ?? turns)
  if (turns.length === 0 && !running) {
    return (
      <EmptyState title="Ask the model something" icon="playground">
        <p>Type a message below. System prompt, tools and a schema for the answer are in the settings.</p>
      </EmptyState>
    )
  }
  return (
    // Busy while text streams in, so that screen readers read whole answers.
    <div class="turns" role="log" aria-label="Conversation" aria-busy={running !== undefined}>
      {turns.map((turn, index) => (
        <TurnView key={index} turn={turn} />
      ))}
      {running && (
        <article class="turn assistant" aria-label={running.model}>
          <h2 class="turn-author">{running.model}</h2>
          <RunningView answer={running.answer} />
        </article>
      )}
      <div ref={end} />
    </div>
  )
}

function TurnView({ turn: { message, answer, model = 'Model' } }: { readonly turn: Turn }) {
  const author =
    message.role === 'user' ? 'You' : message.role === 'tool' ? `Result of ${message.name}` : model
  return (
    <article class={`turn ${message.role}`} aria-label={author}>
      <h2 class="turn-author">{author}</h2>
      {message.role === 'assistant' ? (
        <Output text={message.text} reasoning={message.reasoning} calls={message.toolCalls} />
      ) : (
        <p class={message.role === 'tool' ? 'turn-text code' : 'turn-text'}>{message.text}</p>
      )}
      {answer && <AnswerFacts answer={answer} />}
    </article>
  )
}

const RunningView = ({ answer }: { readonly answer: Answer }) =>
  answer.firstTokenAt === undefined ? (
    <Waiting progress={answer.progress} />
  ) : (
    <Output text={answer.text} reasoning={answer.reasoning} calls={toolCallsOf(answer)} isRunning />
  )

function Waiting({ progress }: { readonly progress: Progress | undefined }) {
  if (progress === undefined || progress.fraction >= 1)
    return <p class="muted">Waiting for the first token…</p>
  const text = `${progress.phase === 'load' ? 'Loading the model' : 'Reading the prompt'}: ${formatPercent(progress.fraction)}`
  return (
    <div class="bar-with-text">
      <Bar kind="progress" label={text} value={progress.fraction} />
      <span class="muted">{text}</span>
    </div>
  )
}

interface OutputProps extends Pick<Extract<Message, { role: 'assistant' }>, 'text' | 'reasoning'> {
  readonly calls: readonly ToolCall[]
  readonly isRunning?: boolean
}

/** Texts of models are text nodes only. */
const Output = ({ text, reasoning, calls, isRunning = false }: OutputProps) => (
  <>
    {reasoning !== '' && (
      <details class="reasoning" open={isRunning && text === ''}>
        <summary>Thinking ({formatCount(reasoning.length)} characters)</summary>
        <p class="turn-text">{reasoning}</p>
      </details>
    )}
    {text !== '' && <p class={isRunning ? 'turn-text running' : 'turn-text'}>{text}</p>}
    {calls.map(({ id, name, arguments: json }, index) => (
      <div class="tool-call" key={id || index}>
        <span class="muted">Calls</span> <strong class="code">{name}</strong>
        <pre class="code">{formatJson(json)}</pre>
      </div>
    ))}
  </>
)

/** Indented, if it is complete. */
function formatJson(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2)
  } catch {
    return json
  }
}

/** How far from the end of the page a reader still follows, in pixels. */
const followDistance = 160

/** Keeps the end of the conversation in view, unless the viewer has scrolled up. */
function useFollow(changed: unknown) {
  const end = useRef<HTMLDivElement>(null)
  const isFollowing = useRef(true)
  useEffect(() => {
    const onScroll = (): void => {
      const { scrollHeight, scrollTop, clientHeight } = document.documentElement
      isFollowing.current = scrollHeight - scrollTop - clientHeight < followDistance
    }
    addEventListener('scroll', onScroll, { passive: true })
    return () => removeEventListener('scroll', onScroll)
  }, [])
  useEffect(() => {
    if (isFollowing.current && end.current) scrollTo(0, document.documentElement.scrollHeight)
  }, [changed])
  return end
}
