/** The page of the chat. `npm run build` bundles it into public/page.js. */
import { useChat } from '@ai-sdk/react'
import { useState } from 'react'
import { createRoot } from 'react-dom/client'

function Chat() {
  const [question, setQuestion] = useState('')
  const { messages, sendMessage, status, error, stop } = useChat() // It posts to /api/chat.
  const isBusy = status === 'submitted' || status === 'streaming'

  function ask(event) {
    event.preventDefault()
    sendMessage({ text: question })
    setQuestion('')
  }

  return (
    <main>
      {messages.map(({ id, role, parts }) => (
        <p key={id}>
          <strong>{role === 'user' ? 'You' : 'Model'}:</strong> {parts.map(describe)}
        </p>
      ))}
      {error && <p role="alert">{error.message}</p>}
      <form onSubmit={ask}>
        <input
          aria-label="Question"
          placeholder="What is the weather in Paris?"
          value={question}
          onChange={({ target }) => setQuestion(target.value)}
        />
        {isBusy ? (
          <button type="button" onClick={stop}>
            Stop
          </button>
        ) : (
          <button type="submit" disabled={question === ''}>
            Ask
          </button>
        )}
      </form>
    </main>
  )
}

/** Shows the text of the model and its tool calls. */
function describe(part, index) {
  if (part.type === 'text') return <span key={index}>{part.text}</span>
  if (part.type === 'tool-get_weather') return <em key={index}>(asks for the weather) </em>
  return null
}

createRoot(document.getElementById('root')).render(<Chat />)
