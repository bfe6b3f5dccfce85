import { Story } from './story.js'

export default function Page() {
  return (
    <main>
      <h1>Stories</h1>
      <Story />
    </main>
  )
}
