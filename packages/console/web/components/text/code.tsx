/** Code and other texts for copying. */
import { CopyButton } from './copy-button.tsx'

/** A block of code with a copy button. */
export const CodeBlock = ({ text, label = 'Code' }: { readonly text: string; readonly label?: string }) => (
  <div class="code-block">
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the block scrolls, so the keyboard must reach it. */}
    <section class="code-scroll" tabIndex={0} aria-label={label}>
      <pre>
        <code>{text}</code>
      </pre>
    </section>
    <CopyButton text={text} />
  </div>
)
