/** The graphics cards that a process may use, as the environment of its app selects them. */

/** Lists of numbers or ids of cards, by the name of their environment variable. Without a list, all cards. */
export type CardSelection = Readonly<Record<string, string>>

/** Variables of CUDA, ROCm and llama.cpp's Vulkan backend. */
const variables = [
  'CUDA_VISIBLE_DEVICES',
  'HIP_VISIBLE_DEVICES',
  'ROCR_VISIBLE_DEVICES',
  'GGML_VK_VISIBLE_DEVICES',
]

export const readCardSelection = (environment: NodeJS.ProcessEnv): CardSelection =>
  Object.fromEntries(variables.flatMap((name) => (environment[name] ? [[name, environment[name]]] : [])))

/** Whether two selections may contain the same card. Only two lists of one variable show that they do not. */
export const canShareCards = (one: CardSelection, other: CardSelection): boolean =>
  Object.entries(one).every(([name, list]) => {
    const others = other[name]?.split(',')
    return !others || list.split(',').some((card) => others.includes(card))
  })
