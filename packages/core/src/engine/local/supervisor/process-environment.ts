/**
 * Selects the environment variables of a model process. The process runs native code on the text of all callers,
 * and may outlive the app, so it gets no variable that may contain a secret of the app.
 */

/** Names of variables. A `*` at the end stands for any further characters. */
const allowed = [
  // Programs, folders and users. `XDG_*` also tells where the drivers of Vulkan are.
  ...['PATH', 'HOME', 'USER', 'LOGNAME', 'TMPDIR', 'TMP', 'TEMP', 'XDG_*'],
  // Locale.
  ...['LANG', 'LANGUAGE', 'LC_*', 'TZ'],
  // Shared libraries. node-llama-cpp reads `PREFIX` in Termux, and `SNAP` in snaps.
  ...['LD_LIBRARY_PATH', 'DYLD_LIBRARY_PATH', 'DYLD_FALLBACK_LIBRARY_PATH', 'PREFIX', 'SNAP'],
  ...['NIX_LD', 'NIX_LD_LIBRARY_PATH'],
  // llama.cpp and node-llama-cpp, their threads and their memory.
  ...['GGML_*', 'NODE_LLAMA_CPP_*', 'OMP_*', 'GOMP_*', 'KMP_*', 'MALLOC_*'],
  // Graphics cards: CUDA, ROCm and Vulkan.
  ...[
    'CUDA_*',
    'NVIDIA_VISIBLE_DEVICES',
    'NVIDIA_DRIVER_CAPABILITIES',
    'NVIDIA_TF32_OVERRIDE',
    'HIP_*',
    'HSA_*',
    'ROCR_*',
    'ROCM_*',
    'GPU_DEVICE_ORDINAL',
  ],
  ...['VK_*', 'MESA_*', 'RADV_*', 'AMD_VULKAN_ICD', 'DRI_PRIME', '__NV_PRIME_*'],
  ...['__VK_LAYER_NV_optimus', '__GLX_VENDOR_LIBRARY_NAME'],
  // In Electron, `process.execPath` runs as Node only with this variable.
  'ELECTRON_RUN_AS_NODE',
  // Windows.
  ...['SYSTEMROOT', 'SYSTEMDRIVE', 'WINDIR', 'COMSPEC', 'PATHEXT', 'OS', 'NUMBER_OF_PROCESSORS'],
  ...['PROCESSOR_*', 'PROGRAMFILES*', 'PROGRAMW6432', 'COMMONPROGRAM*', 'PROGRAMDATA', 'ALLUSERSPROFILE'],
  ...['APPDATA', 'LOCALAPPDATA', 'USERPROFILE', 'USERNAME', 'HOMEDRIVE', 'HOMEPATH'],
]
/** Names of secrets, which no prefix selects. */
const secretName = /(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$/
/** Windows ignores the case of names: `Path`, `SystemRoot`. Elsewhere, another case is another variable. */
const normalize = (name: string): string => (process.platform === 'win32' ? name.toUpperCase() : name)
const names: ReadonlySet<string> = new Set(allowed.filter((name) => !name.endsWith('*')).map(normalize))
const prefixes = allowed.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1))

/** @param furtherNames names of further variables */
export function selectEnvironment(
  environment: NodeJS.ProcessEnv,
  furtherNames: readonly string[],
): NodeJS.ProcessEnv {
  const further = new Set(furtherNames.map(normalize))
  const isSelected = (name: string): boolean => further.has(name) || isAllowed(name)
  return Object.fromEntries(Object.entries(environment).filter(([name]) => isSelected(normalize(name))))
}

const isAllowed = (name: string): boolean =>
  names.has(name) || (prefixes.some((prefix) => name.startsWith(prefix)) && !secretName.test(name))
