'use client'

import { useState } from 'react'

/** A form that shows a story while it arrives. A new question, or a page that is left, ends the previous answer. */
export function Story() {
  const [text, setText] = useState('')
  const [running, setRunning] = useState()

  async function ask(event) {
    event.preventDefault()
    running?.abort()
    const request = new AbortController()
    setRunning(request)
    setText('')
    const about = new FormData(event.currentTarget).get('about')
    try {
      const response = await fetch(`/api/story?${new URLSearchParams({ about })}`, { signal: request.signal })
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
      for (let piece = await reader.read(); !piece.done; piece = await reader.read())
        setText((before) => before + piece.value)
    } catch (error) {
      if (error.name !== 'AbortError') setText(error.message)
    }
  }

  return (
    <form onSubmit={ask}>
      <input name="about" aria-label="Name" defaultValue="Ada" />
      <button type="submit">Tell me a story</button>
      <p>{text}</p>
    </form>
  )
}
