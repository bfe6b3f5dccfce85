/** Pages of docs/reference that are written from the code. `npx vitest run --project test test/reference -u` writes them. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { root } from '../packaging/npm.ts'
import { renderAdminPage } from './admin-api.ts'
import { renderCommandsPage } from './commands.ts'
import { renderEnvironmentPage } from './environment.ts'
import { renderErrorsPage } from './errors.ts'
import { renderOptionsPage } from './options.ts'

const pages = {
  'admin-api': renderAdminPage,
  'command-help': renderCommandsPage,
  environment: renderEnvironmentPage,
  errors: renderErrorsPage,
  options: renderOptionsPage,
}

test.each(Object.entries(pages))('docs/reference/%s.md is what the code says', async (name, render) => {
  await expect(render()).toMatchFileSnapshot(join(root, `docs/reference/${name}.md`))
})

test('the page of environment variables has each variable that the code of core and the command line names', () => {
  const page = renderEnvironmentPage()
  const named = ['core', 'cli'].flatMap((name) =>
    readdirSync(join(root, 'packages', name, 'src'), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
      .flatMap((file) => [
        ...readFileSync(join(root, 'packages', name, 'src', file), 'utf8').matchAll(
          /\b(?:OLLAMA|MODELMOUNT|REGISTRY|HTTPS?|NO|XDG)_[A-Z]+(?:_[A-Z]+)*\b/g,
        ),
      ]),
  )
  const missing = new Set(
    named.map(([variable]) => variable).filter((variable) => !page.includes(`\`${variable}`)),
  )

  expect([...missing]).toEqual([])
})
