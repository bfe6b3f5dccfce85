/** Turns the text of an order into a validated object. */
import { LlmError } from '@modelmount/core'
import { z } from 'zod'

/** The model writes what the schema accepts. All texts and lists have a bound, so that an answer has one, too. */
export const order = z.object({
  customer: z.string().min(1).max(60),
  isUrgent: z.boolean(),
  /** The model writes a text, and code gets a `Date`. */
  deliverOn: z.iso.date().transform((text) => new Date(text)),
  items: z
    .array(z.object({ product: z.string().min(1).max(40), quantity: z.int().min(1).max(999) }))
    .min(1)
    .max(20)
    // A grammar cannot express this rule, so it is checked when the answer is complete.
    .refine(
      (items) => new Set(items.map(({ product }) => product)).size === items.length,
      'has a product twice',
    ),
})

const system = `Extract the order from the message of a customer. Answer as JSON with the customer, whether it is urgent,
the day of delivery, and the items with their quantities.`

const attempts = 2

/**
 * Rejects with an `LlmError` `invalid_output` if the answer breaks a rule of the schema twice.
 * @param {import('@modelmount/core').Llm} llm
 * @param {string} text
 * @param {AbortSignal} signal
 * @returns {Promise<z.infer<typeof order>>}
 */
export async function extractOrder(llm, text, signal) {
  const messages = [{ role: 'user', content: text }]
  for (let attempt = 1; ; attempt++) {
    try {
      const options = { model: 'tiny', system, schema: order, maxTokens: 1_000, temperature: 0, signal }
      const { object } = await llm.chat(messages, options)
      return object
    } catch (error) {
      const issues = LlmError.is(error) && error.code === 'invalid_output' && error.details.schemaIssues
      if (!issues || attempt === attempts) throw error
      messages.push(
        { role: 'assistant', content: error.details.text },
        {
          role: 'user',
          content: `Correct this: ${issues.map(({ path, message }) => `${path}: ${message}`)}`,
        },
      )
    }
  }
}
