/** Renders docs/reference/command-help.md: the help of each command, as its parser prints it. */
import { program } from '../../packages/cli/src/program.ts'
import { block, page } from './table.ts'

type Command = typeof program

/** Returns what `modelmount COMMAND --help` prints in a terminal of 100 columns. */
function helpOf(command: Command): string {
  let text = ''
  command.configureOutput({ writeOut: (part) => (text += part), getOutHelpWidth: () => 100 })
  command.outputHelp()
  return text
}

const pathOf = (command: Command): string =>
  command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name()

const withSubcommands = (command: Command): readonly Command[] => [
  command,
  ...command.commands.filter((sub) => sub.name() !== 'help').flatMap(withSubcommands),
]

export const renderCommandsPage = (): string =>
  page(
    '# Command-line help',
    'The help of each command, as `modelmount COMMAND --help` prints it. [Command line](command-line.md) explains the commands with examples.',
    ...withSubcommands(program).flatMap((command) => [
      `## ${pathOf(command)}`,
      block('text', helpOf(command)),
    ]),
  )
