/** Creates an example of a JSON schema, with the keywords that the SDKs generate. */
interface Schema {
  readonly $ref?: string
  readonly $defs?: Readonly<Record<string, Schema>>
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly Schema[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
}

/** @param text the value of all texts */
export function exampleOf(schema: object | boolean, text = 'Paris'): object {
  // Integers are 3, which LangChain's standard tests expect.
  const examples: Readonly<Record<string, unknown>> = {
    string: text,
    integer: 3,
    number: 3,
    boolean: true,
    null: null,
  }
  const root = schema as Schema

  function create({ $ref, ...schema }: Schema): unknown {
    if ($ref) return create(root.$defs?.[$ref.split('/').at(-1) ?? ''] ?? {})
    if (schema.const !== undefined) return schema.const
    if (schema.enum) return schema.enum[0]
    if (schema.anyOf?.[0]) return create(schema.anyOf[0])
    const type = typeof schema.type === 'string' ? schema.type : schema.type?.[0]
    if (type === 'array') return schema.items ? [create(schema.items)] : []
    if (type && type in examples) return examples[type]
    const { properties = {}, required = Object.keys(properties) } = schema
    return Object.fromEntries(required.map((name) => [name, create(properties[name] ?? {})]))
  }
  return create(root) as object
}
