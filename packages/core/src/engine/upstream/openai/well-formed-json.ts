/** JSON for servers that fail for unpaired surrogates, which a text has that was cut within an emoji. */

/** Writes each unpaired surrogate as U+FFFD. `JSON.stringify()` writes it as an escape such as `\ud83e`. */
export function toWellFormedJson(value: object): string {
  const text = JSON.stringify(value)
  return text.includes('\\ud') ? text.replace(unpairedSurrogate, '$1\\ufffd') : text
}

/** An escape whose backslash is not itself escaped. */
const unpairedSurrogate = /(?<!\\)((?:\\\\)*)\\ud[89a-f][\da-f]{2}/g
