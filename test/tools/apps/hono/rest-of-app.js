/** What the pages leave out of the app. It is appended to their code. */
export const callerOf = (request) => request.headers.has('cookie') && { id: 'visitor' }

app.get('/', (c) => c.text('my own route'))
server.on('listening', () => process.stdout.write(`http://127.0.0.1:${server.address().port}\n`))
