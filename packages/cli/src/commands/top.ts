/** `modelmount top`: shows what a server does now. */
import { renderPage } from '../top/page.ts'
import { createLiveCommand } from './live-command.ts'

export const top = createLiveCommand('top', {
  description: 'show calls, queues and models of a server, as they change',
  render: renderPage,
  toJson: (activity) => activity,
})
