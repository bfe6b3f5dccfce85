/** Replaces e-mail addresses in answers, also those that span several tokens. */

/** Does not begin within an escape sequence of JSON, such as `\n`, because the arguments of tools are JSON. */
const address = /(?<!\\(?:u[\da-f]{0,3})?)[\w.+-]+@[\w-]+(?:\.[\w-]+)+/gi

/** The end of a text that may be the beginning of an address. */
const beginning = /[\\\w.+@-]*$/

/** No address is longer, so a longer beginning is none. */
const maxLength = 254

/** The events with text, and the field that contains it. */
const fields = { text: 'text', reasoning: 'text', 'tool-arguments': 'json' }

const redact = (text) => text.replaceAll(address, '[e-mail]')

export const redaction = {
  name: 'redaction',

  mapEvents() {
    /** The last event with text, and the text of it that is withheld. */
    let held

    const release = () => {
      if (!held) return []
      const { event, text } = held
      held = undefined
      return [{ ...event, [fields[event.type]]: redact(text) }]
    }

    return (event) => {
      const field = fields[event.type]
      if (!field) return [...release(), event]
      const before = held && held.event.type !== event.type ? release() : []
      const text = (held?.text ?? '') + event[field]
      const [end] = text.match(beginning)
      const length = end.length > maxLength ? text.length : text.length - end.length
      held = length < text.length ? { event, text: text.slice(length) } : undefined
      return length > 0 ? [...before, { ...event, [field]: redact(text.slice(0, length)) }] : before
    }
  },
}
