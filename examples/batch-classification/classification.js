/** Classifies support tickets with batches, one at a time. */

const categories = ['billing', 'bug', 'question']

/** Each answer is JSON with one of the categories. */
const format = {
  type: 'json_schema',
  schema: {
    type: 'object',
    properties: { category: { enum: categories } },
    required: ['category'],
    additionalProperties: false,
  },
}

/** All requests begin with this text, so the model evaluates it once. */
const system = `You sort the tickets of a support team. Answer with a category: ${categories.join(', ')}.`

/** Usage reports list the batches under this id. With a `spendingLimit`, a night cannot cost more. */
const caller = { id: 'classification' }

const metadata = { job: 'classify-tickets' }

export class Classification {
  #llm
  #tickets
  #closing = new AbortController()
  /** Resolves when the results of a job are written back, by the id of the job. */
  #following = new Map()

  /** @param tickets by id */
  constructor(llm, tickets) {
    this.#llm = llm
    this.#tickets = tickets
  }

  /** Starts a job for the tickets without a category, or returns the running one. Returns undefined if all have one. */
  async start() {
    const [running] = this.#following.keys()
    if (running) return this.find(running)
    const open = [...this.#tickets.values()].filter(({ category }) => !category)
    if (open.length === 0) return undefined
    const { id } = await this.#llm.batches.create(toRequests(open), { caller, metadata })
    this.#follow(id)
    return this.find(id)
  }

  /** Follows the jobs that an earlier process has started. */
  async resume() {
    for (let after, page; page?.hasMore !== false; after = page.batches.at(-1)?.id) {
      page = await this.#llm.batches.list({ after })
      for (const batch of page.batches)
        if (batch.metadata?.job === metadata.job && !batch.archivedAt) this.#follow(batch.id)
    }
  }

  /** Rejects with an `LlmError` `not_found`. */
  async find(id) {
    const { status, counts } = await this.#llm.batches.get(id)
    return { id, status, counts }
  }

  /** Stops following. The next process continues the jobs. */
  async close() {
    this.#closing.abort()
    await Promise.all(this.#following.values())
  }

  #follow(id) {
    const { signal } = this.#closing
    const following = this.#writeBack(id, signal)
      .catch((error) => {
        if (!signal.aborted)
          process.emitWarning(`The results of ${id} are not written back: ${error.message}`)
      })
      .finally(() => this.#following.delete(id))
    this.#following.set(id, following)
  }

  async #writeBack(id, signal) {
    for await (const _ of this.#llm.batches.watch(id, { signal })); // Until the job has ended.
    for await (const { customId, outcome, line } of this.#llm.batches.results(id)) {
      const ticket = this.#tickets.get(customId)
      // A ticket without a result keeps no category. The next job has it again.
      if (ticket && outcome === 'succeeded') ticket.category ??= toCategory(line.result.message)
    }
  }
}

/** Yields a request for each ticket. They are stored while they are created, so there can be many. */
function* toRequests(tickets) {
  for (const { id, text } of tickets) {
    const messages = [{ role: 'user', content: text }]
    const params = { model: 'tiny', max_tokens: 50, output_config: { format }, system, messages }
    yield { custom_id: id, params }
  }
}

/** Returns undefined for an answer that `max_tokens` has cut off. */
const toCategory = ({ content: [{ text }], stop_reason }) =>
  stop_reason === 'end_turn' ? JSON.parse(text).category : undefined
