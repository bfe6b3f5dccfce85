/**
 * Tries clients in all situations, and prints the failure of each as JSON, or null:
 * node run.mjs <URLs of the servers, as JSON> <module…>
 */
const [urls, ...modules] = process.argv.slice(2)
// The AI SDK would print its warnings beside the results.
globalThis.AI_SDK_LOG_WARNINGS = false
const results = {}
for (const module of modules) {
  const { clients } = await import(`./${module}.mjs`)
  for (const [client, situations] of Object.entries(clients(JSON.parse(urls)))) {
    results[client] = {}
    for (const [situation, attempt] of Object.entries(situations))
      results[client][situation] = await attempt().then(
        () => null,
        (error) => String(error?.stack ?? error),
      )
  }
}
process.stdout.write(JSON.stringify(results))
