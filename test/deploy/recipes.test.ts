/** Checks the files of docs/operations/deploy against each other and against the app. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { healthRoutes } from '@modelmount/core/operations'
import { expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { root } from '../packaging/npm.ts'
import { readRecipe } from './debian.ts'
import { parseDockerfile } from './dockerfile.ts'

const drainSeconds = 30
/** Clients have this time to read the last event. */
const lastEventSeconds = 5
const secondsOf = (text: string): number => Number(/^(\d+)s$/.exec(text)?.[1])
const healthPaths = healthRoutes().routes.map(({ path }) => path)

const dockerfile = parseDockerfile(readRecipe('docker/Dockerfile'))
const argsOf = (name: string) => dockerfile.filter((one) => one.name === name).map(({ args }) => args)
const compose = parse(readRecipe('docker/compose.yaml'))

test('the Dockerfile runs the app as another user than root, without a shell or npm that would keep signals', () => {
  expect(argsOf('USER')).toEqual([['node']])
  expect([argsOf('ENTRYPOINT'), argsOf('CMD')]).toEqual([[['tini', '--']], [['node', 'server.js']]])
  expect(argsOf('HEALTHCHECK').flat().join(' ')).toContain('/livez')
  expect(healthPaths).toContain('/livez')
})

test('all mounted files of Compose exist, and its services know each other', () => {
  const { app, postgres, prometheus, grafana } = compose.services
  const mounted = [prometheus, grafana].flatMap(({ volumes }) => volumes as readonly string[])
  const files = mounted.map((text) => text.split(':')[0] ?? '').filter((path) => path.startsWith('./'))

  // The commands of the page copy these two.
  const copied = {
    './grafana/modelmount.json': 'grafana/modelmount.json',
    './alerts.yml': 'prometheus/alerts.yml',
  }
  for (const [file, source] of Object.entries(copied)) {
    expect(files).toContain(file)
    expect(readRecipe('index.md')).toContain(`cp docs/operations/${source} my-app/`)
    expect(existsSync(join(root, 'docs/operations', source)), source).toBe(true)
  }
  for (const file of files.filter((path) => !(path in copied)))
    expect(existsSync(join(root, 'docs/operations/deploy/docker', file)), file).toBe(true)
  expect(new URL(app.environment.DATABASE_URL).hostname).toBe('postgres')
  expect(new URL(app.environment.DATABASE_URL).pathname.slice(1)).toBe(postgres.environment.POSTGRES_DB)
  const [{ static_configs: scraped }] = parse(readRecipe('docker/prometheus.yml')).scrape_configs
  expect(scraped).toEqual([{ targets: [`app:${app.environment.METRICS_PORT}`] }])
  expect(new URL(parse(readRecipe('docker/grafana/datasources.yaml')).datasources[0].url).host).toBe(
    'prometheus:9090',
  )
})

test('Compose publishes ports on this machine only, and gives the app the time to drain', () => {
  const ports = Object.values(compose.services).flatMap(
    (service) => (service as { readonly ports?: readonly string[] }).ports ?? [],
  )

  expect(ports.filter((port) => !port.startsWith('127.0.0.1:'))).toEqual([])
  expect(secondsOf(compose.services.app.stop_grace_period)).toBeGreaterThan(drainSeconds + lastEventSeconds)
  // The folder of the sockets, which the Dockerfile makes private, too.
  expect(compose.services.app.tmpfs).toContain('/run/app:uid=1000,gid=1000,mode=700')
})

test('Kubernetes probes existing routes, and gives the app the time to drain', () => {
  const [deployment, service, budget] = parseAllDocuments(readRecipe('kubernetes/modelmount.yaml')).map(
    (document) => {
      expect(document.errors).toEqual([])
      return document.toJS()
    },
  )
  const { spec } = deployment.spec.template
  const [container] = spec.containers
  const probes = ['startupProbe', 'livenessProbe', 'readinessProbe'].map(
    (name) => container[name].httpGet.path,
  )
  const preStopSeconds = Number(container.lifecycle.preStop.exec.command[1])

  expect(probes).toEqual(['/startupz', '/livez', '/readyz'])
  expect(healthPaths).toEqual(expect.arrayContaining(probes))
  expect(spec.terminationGracePeriodSeconds).toBeGreaterThan(preStopSeconds + drainSeconds + lastEventSeconds)
  // Load balancers notice before the app stops to admit calls.
  const { periodSeconds, failureThreshold } = container.readinessProbe
  expect(periodSeconds * failureThreshold).toBeLessThanOrEqual(preStopSeconds)
  const mounts = container.volumeMounts.map(({ name }: { readonly name: string }) => name).sort()
  expect(spec.volumes.map(({ name }: { readonly name: string }) => name).sort()).toEqual(mounts)
  const { matchLabels } = deployment.spec.selector
  expect([service.spec.selector, budget.spec.selector.matchLabels]).toEqual([matchLabels, matchLabels])
})

test('PM2 waits for the drain, and leaves the shared model process alone', () => {
  const page = readFileSync(join(root, 'docs/guides/bundlers-and-tools.md'), 'utf8')
  const recipe = readRecipe('pm2/ecosystem.config.cjs')

  expect(recipe).toContain('treekill: false')
  expect(page).toContain(recipe.trim())
})
