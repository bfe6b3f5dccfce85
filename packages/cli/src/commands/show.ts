/** `modelmount show`: shows a model, or one part of it. */
import { Option } from 'commander'
import { describeModel, type ShowAnswer } from '../describe-model.ts'
import { print } from '../output.ts'
import { withServer } from '../server.ts'
import { clientCommand, type HostOption } from './options/client-command.ts'

const parts = ['license', 'modelfile', 'parameters', 'system', 'template'] as const
type Part = (typeof parts)[number]

export const show = clientCommand('show <model>', 'show information for a model').option(
  '-v, --verbose',
  'show metadata and tensors as well',
)
for (const part of parts)
  show.addOption(
    new Option(`--${part}`, `show only the ${part === 'modelfile' ? 'Modelfile' : part}`).conflicts(
      parts.filter((other) => other !== part),
    ),
  )

show.action(
  (model: string, options: HostOption & { readonly verbose?: true } & Partial<Record<Part, true>>) =>
    withServer(options, async (server) => {
      const { verbose = false } = options
      const answer = await server.post<ShowAnswer>('/api/show', { model, verbose })
      const part = parts.find((one) => options[one])
      print(part ? `${answer[part] ?? ''}\n` : describeModel(answer, verbose))
    }),
)
