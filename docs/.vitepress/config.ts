/** The site of `docs/`, which `npm run docs` builds into `docs/.vitepress/dist` without a network. */
import { defineConfig } from 'vitepress'
import { writeApiReference } from './api.ts'
import { copyLinkedFiles, linkRepository } from './links.ts'
import { notPages, sitePath, slug } from './pages.ts'
import { sidebar } from './sidebar.ts'

await writeApiReference()

export default defineConfig({
  title: 'Modelmount',
  description:
    'Local LLMs in the Node server you already have, with the APIs of Ollama, OpenAI and Anthropic',
  lang: 'en',
  // The repository, because READMEs of examples and packages are pages as well.
  srcDir: '..',
  srcExclude: [...notPages],
  rewrites: sitePath,
  cleanUrls: true,
  lastUpdated: false,
  markdown: { config: linkRepository, anchor: { slugify: slug } },
  buildEnd: ({ outDir }) => copyLinkedFiles(outDir),
  themeConfig: {
    sidebar: sidebar(),
    outline: [2, 3],
    search: { provider: 'local' },
    nav: [
      { text: 'Start', link: '/start/installation' },
      { text: 'Guides', link: '/guides/mounting' },
      { text: 'Operations', link: '/operations/deployment' },
      { text: 'Reference', link: '/reference/options' },
    ],
  },
})
