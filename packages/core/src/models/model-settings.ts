/** Finds the settings of the app for a model, by names and patterns. */
import type { FindModelSettings, ModelSettings } from '../engine/model-settings.ts'
import { createNameMatcher, specificityOf } from './name-pattern.ts'

/** Names whose settings are cached. Clients can send any name. */
const maxCached = 1_000

/**
 * An entry without `*` is a name, such as `llama3.2`, which means `llama3.2:latest`. In a pattern, `*` stands for any
 * characters, and the tag belongs to the name: `qwen3:*`. Of all entries that match, each field comes from the most
 * specific one that sets it: a name, else the pattern with the most characters besides `*`, else the later pattern.
 */
export function createSettingsFinder(entries: Readonly<Record<string, ModelSettings>>): FindModelSettings {
  const sorted = Object.entries(entries)
    .map(([entry, settings]) => ({ settings, matches: createNameMatcher(entry), rank: specificityOf(entry) }))
    .sort((a, b) => a.rank - b.rank)
  const cached = new Map<string, ModelSettings>()
  return (name) => {
    const known = cached.get(name)
    if (known) return known
    const found = sorted
      .filter(({ matches }) => matches(name))
      .reduce<ModelSettings>((merged, { settings }) => mergeSettings(merged, settings), noSettings)
    if (cached.size === maxCached) cached.clear()
    cached.set(name, found)
    return found
  }
}

const noSettings: ModelSettings = {}

const mergeSettings = (general: ModelSettings, specific: ModelSettings): ModelSettings => {
  const sampling = { ...general.sampling, ...specific.sampling }
  return { ...general, ...specific, ...(Object.keys(sampling).length > 0 && { sampling }) }
}
