// Starts llama.cpp's server, and what is measured in front of it, each in a process of its own.
import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { serve, start } from './serve.mjs'

const model = 'small'
const readyWithinMs = 60_000

/** Runs llama-server with one thread, so that the other core has room for what is in front of it. */
export async function startUpstream(executable, file, parallel) {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const args = [
    ...['--model', file, '--alias', model, '--host', '127.0.0.1', '--port', String(port)],
    ...['--threads', '1', '--parallel', String(parallel), '--ctx-size', String(parallel * 512)],
  ]
  const stop = await run(executable, args, `${url}/health`)
  return { url, model, ...stop }
}

export async function startOurs(upstream, options = {}) {
  const server = await serve({ upstream: `gpu=${upstream.url}`, ...options })
  return { ...server, model: `gpu/${model}` }
}

export async function startPipe({ url }) {
  const server = await start([fileURLToPath(new URL('pipe.mjs', import.meta.url)), url])
  return { ...server, model }
}

/** Runs LiteLLM's proxy with one worker, without a database and without its requests to other hosts. */
export async function startLiteLlm(executable, { url: upstream }) {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const folder = mkdtempSync(join(tmpdir(), 'modelmount-litellm-'))
  const config = join(folder, 'config.json')
  const key = 'sk-bench'
  writeFileSync(
    config,
    JSON.stringify({
      model_list: [
        {
          model_name: model,
          litellm_params: { model: `openai/${model}`, api_base: `${upstream}/v1`, api_key: 'none' },
        },
      ],
      general_settings: { master_key: key },
    }),
  )
  const args = ['--config', config, '--host', '127.0.0.1', '--port', String(port), '--num_workers', '1']
  // Answers of the bench repeat a few words, which LiteLLM ends after 100 equal chunks.
  const limits = { REPEATED_STREAMING_CHUNK_LIMIT: '1000000' }
  const env = { ...process.env, ...limits, LITELLM_LOCAL_MODEL_COST_MAP: 'True', LITELLM_LOG: 'ERROR' }
  const started = await run(executable, [...args, '--telemetry', 'False'], `${url}/health/readiness`, { env })
  const stop = async () => {
    await started.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  return { url, model, id: started.id, stop, headers: { authorization: `Bearer ${key}` } }
}

/** Starts a process that uses this share of a core while it is on. */
export async function startBusyProcess(share) {
  const child = fork(fileURLToPath(new URL('busy.mjs', import.meta.url)), [String(share)])
  await once(child, 'message')
  const stop = async () => {
    child.disconnect()
    await once(child, 'exit')
  }
  return { id: child.pid, turn: (isOn) => child.send(isOn), stop }
}

async function run(executable, args, health, options = {}) {
  const child = spawn(executable, args, { stdio: 'ignore', ...options })
  const deadline = performance.now() + readyWithinMs
  while (!(await isOk(health))) {
    if (child.exitCode !== null || performance.now() > deadline) {
      child.kill()
      throw new Error(`${executable} does not answer.`)
    }
    await sleep(200)
  }
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill()
    await once(child, 'exit')
  }
  return { id: child.pid, stop }
}

const isOk = (url) =>
  fetch(url).then(
    ({ ok }) => ok,
    () => false,
  )

async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address()
  probe.close()
  return port
}
