/** The language of the browser. */

/**
 * The language if it is a valid tag. Chromium takes the language of the system, and `en-US@posix` is none.
 *
 * @param language such as `navigator.language`
 */
export function toLanguageTag(language: string): string | undefined {
  try {
    return new Intl.Locale(language).toString()
  } catch {
    return undefined
  }
}

/** Corrects the language for libraries that read it. uPlot creates formats with it, which throw otherwise. */
export function correctLanguage(browser: { readonly language: string }): void {
  if (toLanguageTag(browser.language) !== undefined) return
  const language = new Intl.NumberFormat().resolvedOptions().locale
  Object.defineProperty(browser, 'language', { value: language, configurable: true })
}
