/** Preloaded by the build of the site: each attempt to reach a network ends the build. */
import { Socket } from 'node:net'

Socket.prototype.connect = () => {
  throw new Error('The build of the documentation used the network.')
}
