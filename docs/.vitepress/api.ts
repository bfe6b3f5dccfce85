/** Writes docs/reference/api with TypeDoc: one page per entry point of each package, from the comments of its types. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Application, type ProjectReflection } from 'typedoc'
import type { PluginOptions } from 'typedoc-plugin-markdown'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The built declarations of each entry point, by what apps import, such as `@modelmount/core/limits`. */
const entryPoints: ReadonlyMap<string, string> = new Map(
  readdirSync(join(root, 'packages')).flatMap((folder) => {
    const path = join(root, 'packages', folder)
    const { name, exports = {} } = JSON.parse(readFileSync(join(path, 'package.json'), 'utf8'))
    return Object.entries<string | { readonly types: string }>(exports).flatMap(([entry, files]) =>
      typeof files === 'string' ? [] : [[join(name, entry), join(path, files.types)] as const],
    )
  }),
)

/** Throws if a declaration cannot be read, such as before `npm run build`. */
export async function writeApiReference(): Promise<void> {
  const settings: Partial<PluginOptions> = {
    // One page per entry point.
    outputFileStrategy: 'modules',
    entryFileName: 'index',
    hideBreadcrumbs: true,
    hidePageHeader: true,
    hideGroupHeadings: false,
    parametersFormat: 'table',
    interfacePropertiesFormat: 'table',
    classPropertiesFormat: 'table',
    typeDeclarationFormat: 'table',
    propertyMembersFormat: 'table',
    useCodeBlocks: true,
    sanitizeComments: true,
  }
  const app = await Application.bootstrapWithPlugins({
    name: 'Exported types',
    tsconfig: join(root, 'tsconfig.base.json'),
    entryPoints: [...entryPoints.values()],
    plugin: ['typedoc-plugin-markdown'],
    readme: 'none',
    out: join(root, 'docs/reference/api'),
    // Declarations have no lines that help a reader.
    disableSources: true,
    excludePrivate: true,
    excludeExternals: true,
    skipErrorChecking: true,
    githubPages: false,
    logLevel: 'Error',
    ...settings,
  })
  const project = await app.convert()
  if (!project) throw new Error('TypeDoc cannot read the built declarations. Run `npm run build`.')
  nameModules(project)
  await app.generateOutputs(project)
}

/** Names each module like its entry point. TypeDoc names it like its file. */
function nameModules(project: ProjectReflection): void {
  for (const module of project.children ?? []) {
    const file = project.getSymbolIdFromReflection(module)?.fileName
    for (const [name, types] of entryPoints) if (file === types) module.name = name
  }
}
