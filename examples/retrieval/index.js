/** An index of passages in memory: finds candidates by their embeddings, and orders them with a reranking model. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Passages that the embeddings find, for the reranking model. */
const maxCandidates = 20

export class PassageIndex {
  #llm
  #models
  /** Passages with vectors of length 1. */
  #entries = []

  /** @param models names of the models: `{ embed, rerank }` */
  constructor(llm, models) {
    this.#llm = llm
    this.#models = models
  }

  /** Reads all Markdown files of a folder. With many documents, store the vectors in a database instead. */
  async addFolder(folder, { signal } = {}) {
    const names = (await readdir(folder)).filter((name) => name.endsWith('.md')).sort()
    for (const name of names) await this.add(name, await readFile(join(folder, name), 'utf8'), { signal })
  }

  /** Replaces the passages of a source. Readers see the old ones or the new ones. */
  async add(source, text, { signal } = {}) {
    const passages = splitIntoPassages(text)
    if (passages.length === 0) return
    const { embeddings } = await this.#llm.embed(passages, { model: this.#models.embed, signal })
    const added = passages.map((passage, index) => ({ source, passage, vector: embeddings[index] }))
    this.#entries = [...this.#entries.filter((entry) => entry.source !== source), ...added]
  }

  get size() {
    return this.#entries.length
  }

  /** @returns the best passages, the best one first, as `{ source, passage, score }` with a score from 0 to 1 */
  async search(question, { limit = 3, signal } = {}) {
    const options = { model: this.#models.embed, overflow: 'truncate', signal }
    const { embedding } = await this.#llm.embed(question, options)
    const candidates = this.#entries
      .map((entry) => ({ ...entry, similarity: dot(embedding, entry.vector) }))
      .sort((a, b) => b.similarity - a.similarity)
      .slice(0, maxCandidates)
    if (candidates.length === 0) return []
    const documents = candidates.map(({ passage }) => passage)
    const { scores } = await this.#llm.rerank(
      { model: this.#models.rerank, query: question, documents, overflow: 'truncate' },
      { signal },
    )
    return candidates
      .map(({ source, passage }, index) => ({ source, passage, score: scores[index] }))
      .sort((a, b) => b.score - a.score)
      .slice(0, limit)
  }
}

/** Paragraphs, each with the title of its document, which says what it is about. */
export function splitIntoPassages(text) {
  const title = /^# (.+)$/m.exec(text)?.[1]
  return text
    .split(/\n\s*\n/)
    .map((paragraph) => paragraph.trim())
    .filter((paragraph) => paragraph && !paragraph.startsWith('# '))
    .map((paragraph) => (title ? `${title}: ${paragraph}` : paragraph))
}

/** The cosine of the angle, as both vectors have length 1. */
const dot = (a, b) => a.reduce((sum, value, index) => sum + value * b[index], 0)
