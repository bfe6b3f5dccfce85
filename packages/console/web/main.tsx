/** Starts the console in the page. */
import { render } from 'preact'
import { App } from './app.tsx'
import { correctLanguage } from './format/language.ts'
import { takeToken } from './shell/login.tsx'
import './styles/index.css'

const show = (): void => render(<App token={takeToken()} />, document.getElementById('app') as HTMLElement)

// Before a page with charts is loaded.
correctLanguage(navigator)
show()
// A login link that is opened in a tab of the console changes the fragment only.
addEventListener('hashchange', () => {
  if (location.hash.startsWith('#/login?')) show()
})
