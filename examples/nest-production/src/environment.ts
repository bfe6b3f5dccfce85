/** Checks the environment variables when the app starts. */
import { z } from 'zod'

const environment = z.object({
  /** Tokens of users, as `TOKEN:USER:TIER,…`. In your app, they are sessions or JSON Web Tokens. */
  API_TOKENS: z.string().regex(/^[\w-]{16,}:\w+:(free|paid)(,[\w-]{16,}:\w+:(free|paid))*$/, {
    error: 'expected TOKEN:USER:TIER, with tokens of at least 16 characters, separated by commas',
  }),
  /** Folder of models. Without it, that of Ollama. */
  MODELS_DIR: z.string().min(1).optional(),
  HOST: z.string().default('127.0.0.1'),
  PORT: z.coerce.number().int().min(0).max(65_535).default(3000),
  /** How long calls are admitted after SIGTERM, while `/readyz` already answers 503. */
  ADMIT_FOR: z.string().default('5s'),
})

export function validateEnvironment(variables: Record<string, unknown>): z.infer<typeof environment> {
  const { success, data, error } = environment.safeParse(variables)
  if (!success) throw new Error(`The environment variables are wrong:\n${z.prettifyError(error)}`)
  return data
}
