/**
 * A fake decoder without weights. Instead of KV states, it stores the tokens of each sequence. It throws if
 * the scheduler continues a sequence at a wrong position or with the state of another prompt.
 */
import { readFile, writeFile } from 'node:fs/promises'
import type { Decoder, Sampler } from '../../packages/core/src/engine/local/model-process/decoding/decoder.ts'

export type Token = Parameters<Decoder['isEog']>[0]

export interface Remembering extends Decoder {
  /** Number of evaluated tokens, of prompts and answers together. */
  evaluated: number
  /** Makes the next `save()` fail: it throws, or it writes an incomplete file. */
  fails: 'at once' | 'at the end' | undefined
}

interface Prompted extends Sampler {
  readonly prompt: readonly Token[]
}

interface RememberingOptions {
  readonly sequences: number
  readonly chunkSize: number
  readonly cutsBack: boolean
  readonly bytesPerToken: number
  /** Called before each decoding step. */
  readonly onStep: () => void
}

export function rememberingDecoder(options: RememberingOptions): Remembering {
  const { sequences: sequenceCount, chunkSize, cutsBack: canTruncate, bytesPerToken, onStep } = options
  const cells = new Map<number, readonly Token[]>()
  const copied = new Set<number>()
  const expectMemory = (sequence: number): void => {
    if (copied.has(sequence)) throw new Error(`The memory of the sequence ${sequence} is not copied yet.`)
  }
  const of = (sequence: number): readonly Token[] => cells.get(sequence) ?? []
  const decoder: Remembering = {
    evaluated: 0,
    fails: undefined,
    sequenceCount,
    chunkSize,
    canTruncate,
    chunksAtOnce: 2,
    async decode(pieces) {
      onStep()
      copied.clear()
      return pieces.map(({ sequence, position, tokens, guesses = [], sampler }) => {
        if (of(sequence).length !== position)
          throw new Error(`The sequence has ${of(sequence).length} tokens, decoding starts at ${position}.`)
        decoder.evaluated += tokens.length + guesses.length
        cells.set(sequence, [...of(sequence), ...tokens, ...guesses])
        if (!sampler) return []
        const { prompt } = sampler as Prompted
        // However the state was built, it must be the state of the complete prompt.
        if (!prompt.every((token, at) => of(sequence)[at] === token))
          throw new Error('The sequence has the state of another prompt.')
        const wrong = guesses.findIndex((token) => token !== 1)
        const rightGuesses = wrong === -1 ? guesses : guesses.slice(0, wrong)
        return [...rightGuesses, 1].map(() => ({ token: 1 as Token }))
      })
    },
    truncate(sequence, keep) {
      const stored = of(sequence)
      if (keep !== 0 && keep !== stored.length && !canTruncate) return false
      cells.set(sequence, stored.slice(0, keep))
      return true
    },
    isComplete: () => canTruncate,
    async save(sequence, tokens, file) {
      expectMemory(sequence)
      const { fails } = decoder
      decoder.fails = undefined
      if (fails === 'at once') throw new Error('The disk is full.')
      if (JSON.stringify(of(sequence)) !== JSON.stringify(tokens))
        throw new Error('The sequence has other tokens than those to save.')
      const content = JSON.stringify(tokens).padEnd(tokens.length * bytesPerToken)
      await writeFile(file, fails === 'at the end' ? content.slice(1) : content)
      return content.length
    },
    windowSize: Number.POSITIVE_INFINITY,
    minCopyLength: canTruncate ? chunkSize : Number.POSITIVE_INFINITY,
    async copy(from, to) {
      cells.set(to, of(from))
      // llama.cpp copies the memory at the beginning of the next step.
      copied.add(to)
    },
    async load(sequence, file) {
      expectMemory(sequence)
      const tokens = JSON.parse(await readFile(file, 'utf8')) as Token[]
      cells.set(sequence, tokens)
      return tokens.length
    },
    createSampler: (_, prompt) => ({ prompt, dispose() {} }) as Prompted,
    isEog: () => false,
    setThreads() {},
  }
  return decoder
}
