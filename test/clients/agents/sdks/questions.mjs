/** Questions to the instructed model, and its answers. See `instructed-model.ts`. */
import { z } from 'zod'

export const City = z.object({ city: z.string() })
export const weatherOf = async ({ city }) => `rain in ${city}`
export const calls = 'call weather {"city":"Paris"}'
export const parallelCalls = `${calls}\ncall weather {"city":"Rome"}`
// Some clients send a text as JSON.
export const result = /^Results: "?rain in Paris"?$/
export const parallelResults = /^Results: "?rain in Paris"? \| "?rain in Rome"?$/
export const greets = (turn, text) => `User message ${turn}: ${text}`
