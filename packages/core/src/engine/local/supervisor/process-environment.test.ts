import { expect, test } from 'vitest'
import { selectEnvironment } from './process-environment.ts'

const selected = (names: readonly string[], more: readonly string[] = []): readonly string[] =>
  Object.keys(selectEnvironment(Object.fromEntries(names.map((name) => [name, 'value'])), more))

test('folders, locale, libraries and graphics cards are selected', () => {
  const names = ['PATH', 'HOME', 'TMPDIR', 'LD_LIBRARY_PATH', 'XDG_DATA_DIRS', 'LANG', 'LC_ALL', 'TZ']
  const cards = [
    'CUDA_VISIBLE_DEVICES',
    'GGML_METAL_NO_RESIDENCY',
    'HSA_OVERRIDE_GFX_VERSION',
    'NVIDIA_VISIBLE_DEVICES',
    'VK_ICD_FILENAMES',
    '__VK_LAYER_NV_optimus',
  ]

  expect(selected([...names, ...cards])).toEqual([...names, ...cards])
})

test('no other variable is selected: secrets, settings of Node, of package managers and of proxies', () => {
  const names = ['DATABASE_URL', 'AWS_SECRET_ACCESS_KEY', 'HF_TOKEN', 'LLAMA_API_KEY', 'OLLAMA_API_KEY']
  const node = ['NODE_OPTIONS', 'NODE_AUTH_TOKEN', 'NODE_EXTRA_CA_CERTS', 'npm_config_registry']
  const prefixed = ['NVIDIA_API_KEY', 'GGML_TOKEN', 'CUDA_SECRET', 'OMP_PASSWORD', 'XDG_CREDENTIALS']
  const lookalikes = ['PATHS', 'HOME_TOKEN', 'TZ_KEY', 'MY_CUDA_KEY', 'HTTPS_PROXY', 'LD_PRELOAD', '']

  expect(selected([...names, ...node, ...prefixed, ...lookalikes])).toEqual([])
})

test('the app selects further variables by their exact names', () => {
  expect(selected(['APP_TRACE', 'APP_TRACE_TOKEN', 'app_trace'], ['APP_TRACE', 'MISSING'])).toEqual([
    'APP_TRACE',
  ])
})

test.runIf(process.platform !== 'win32')('the case of names counts', () => {
  expect(selected(['path', 'cuda_visible_devices'])).toEqual([])
})
