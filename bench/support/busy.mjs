// Uses a share of a core, to measure how much that alone slows another program.
// Usage: node busy.mjs 0.2
const share = Number(process.argv[2])
const periodMs = 2
let isOn = false

setInterval(() => {
  const until = performance.now() + (isOn ? share * periodMs : 0)
  while (performance.now() < until) JSON.parse(JSON.stringify({ text: 'x'.repeat(200), list: [1, 2, 3] }))
}, periodMs)
process.on('message', (value) => {
  isOn = value
})
process.once('disconnect', () => process.exit())
process.send('ready')
