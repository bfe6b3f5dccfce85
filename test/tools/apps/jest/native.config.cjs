// ES modules as they are. Start Jest with NODE_OPTIONS=--experimental-vm-modules.
module.exports = { testEnvironment: 'node', transform: {} }
