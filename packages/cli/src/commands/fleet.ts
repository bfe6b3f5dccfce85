/** `modelmount fleet`: shows the replicas of a server. */
import { renderFleet } from '../top/fleet-page.ts'
import { createLiveCommand } from './live-command.ts'

export const fleet = createLiveCommand('fleet', {
  description: 'show the replicas of upstream engines: state, load, cache hits and ejections',
  render: renderFleet,
  toJson: ({ replicas }) => replicas,
})
