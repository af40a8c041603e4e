import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { readOpenMetrics, type Family } from '../fixtures/open-metrics.ts'
import { postgres } from '../helpers/backends.ts'
import { createSender, keepAlive, send } from '../helpers/deliveries.ts'
import { allIn, request } from '../helpers/http.ts'
import { linksServer, makeLink } from '../helpers/links.ts'
import { freePort, temporaryFolder } from '../helpers/owner.ts'
import { ROOT } from '../helpers/program.ts'
import { startScraper } from '../helpers/prometheus.ts'
import { startServer } from '../helpers/server.ts'
import { openStream } from '../helpers/sse.ts'
import { until } from '../helpers/until.ts'
import { deploymentParts, lacks } from '../runner/system-parts.ts'

const FOLDER = join(ROOT, 'deploy/monitoring')
const RULES = join(FOLDER, 'gatehouse.rules.yml')

interface Panel {
  title: string
  targets?: readonly { expr: string; refId: string }[]
}

const dashboard: { panels: readonly Panel[] } = JSON.parse(
  readFileSync(join(FOLDER, 'gatehouse.dashboard.json'), 'utf8'),
)

/** What a panel asks Prometheus, with Grafana's variables filled in. */
function queriesOf({ targets = [] }: Panel) {
  return targets.map(({ expr }) =>
    expr.replaceAll('$__rate_interval', '1m').replaceAll('$instance', '.*'),
  )
}

function panelNamed(title: string) {
  const panel = dashboard.panels.find((one) => one.title === title)
  if (panel === undefined) throw new Error(`no panel "${title}"`)
  return panel
}

/** The expressions of all rules, as far as names of metrics go. */
const ruleText = readFileSync(RULES, 'utf8').replaceAll(/^ *(?:summary|description|#).*\n/gm, '')

const sender = createSender()
const env = {
  ...(await postgres.env(t)),
  ...sender.env,
  // Its metric is there only with a queue; nobody listens at this one.
  HOOKS_QUEUE_URL: `redis://127.0.0.1:${await freePort()}`,
  HOOKS_QUEUE_CHANNELS: 'orders',
}
const server = await startServer(t, { env })
const agent = keepAlive(t, 1)

t.test('every metric and label that is asked for is there', async (t) => {
  const families = readOpenMetrics((await request(`${server.ops}/metrics`)).text)
  const asked = [...dashboard.panels.flatMap(queriesOf), ruleText].join('\n')
  const names = new Set([...asked.matchAll(/\b(?:gatehouse|process)_\w+/g)].map(([name]) => name))
  t.ok(names.size > 30, 'names were found')
  for (const name of names) t.ok(familyOf(families, name), name)
  let compared = 0
  for (const [, name = '', selected = ''] of asked.matchAll(/\b(gatehouse_\w+)\{([^}]*)\}/g)) {
    const labels = labelsOf(familyOf(families, name))
    if (labels === undefined) continue
    for (const label of allIn(selected, /(\w+)(?:=|!=|=~|!~)"/g)) {
      t.ok(labels.has(label), `${label} of ${name}`)
      compared++
    }
  }
  t.ok(compared > 20, 'labels were compared')
})

function familyOf(families: ReadonlyMap<string, Family>, name: string) {
  const base = name.replace(/_(?:total|bucket|count|sum)$/, '')
  return families.get(name) ?? families.get(base)
}

/** The labels of a family's series, with those that Prometheus adds; undefined without a series. */
function labelsOf(family: Family | undefined) {
  const [first] = family?.samples ?? []
  if (first === undefined) return undefined
  const own = allIn(first.labels, /(\w+)="/g)
  return new Set([...own, 'instance', 'job'])
}

t.test(
  'promtool takes the rules, and they fire when they should',
  { skip: lacks(deploymentParts.prometheus) },
  async (t) => {
    execFileSync('promtool', ['check', 'rules', RULES])
    const manual = readFileSync(join(ROOT, 'docs/monitoring.md'), 'utf8')
    const [, settings = ''] = /```yaml\n(# [^`]*prometheus\.yml\n[^`]*)```/.exec(manual) ?? []
    const installed = '/usr/local/share/gatehouse/gatehouse.rules.yml'
    t.ok(settings.includes(installed), 'the manual has the settings')
    const file = join(await temporaryFolder(t, 'prometheus'), 'prometheus.yml')
    writeFileSync(file, settings.replace(installed, RULES))
    execFileSync('promtool', ['check', 'config', file])
    execFileSync('promtool', ['test', 'rules', join(ROOT, 'test/deploy/monitoring-rules.yml')])
  },
)

t.test(
  'Prometheus collects from a server, and has p50 and p99 of what people feel',
  { skip: lacks(deploymentParts.prometheus) },
  async (t) => {
    const prometheus = await startScraper(t, new URL(server.hooks), RULES)
    async function ask(path: string, query: Readonly<Record<string, string>> = {}) {
      const url = `${prometheus.url}/api/v1/${path}?${new URLSearchParams(query).toString()}`
      const answer = await request(url)
      t.equal(answer.status, 200, `${path} ${query['query'] ?? ''}: ${answer.text.slice(0, 500)}`)
      return answer.json() as { data: never }
    }
    async function values(query: string) {
      const { data }: { data: { result: { value: [number, string] }[] } } = await ask('query', {
        query,
      })
      return data.result.map(({ value }) => Number(value[1]))
    }
    const stream = await openStream(t, `${server.hooks}/events`)
    await stream.until(({ event }) => event === 'status', 'its place')
    await makeLink(await linksServer(server, env).user('ann'), 'docs')

    const felt = ['Ingest', 'Stream', 'Redirect', 'Statements'].map(panelNamed).flatMap(queriesOf)
    t.equal(felt.length, 8, 'p50 and p99 of four')
    await until(async () => {
      t.equal((await send(agent, server.hooks, await sender.delivery())).status, 202)
      t.equal((await request(`${server.links}/docs`)).status, 302)
      const found = await Promise.all(felt.map(values))
      return found.every((of) => of.length > 0 && of.every((value) => value >= 0 && value < 60))
    }, 'figures of all four')
    for (const query of dashboard.panels.flatMap(queriesOf)) await values(query)
    const up = await values(queriesOf(panelNamed('Up'))[0] ?? '')
    t.same(up, [1], 'the job has the name that the dashboard and the rules know')

    const healthy = await until(async () => {
      const { data }: { data: { groups: { rules: { health: string; name: string }[] }[] } } =
        await ask('rules')
      const all = data.groups.flatMap((group) => group.rules)
      return all.length > 0 && all.every(({ health }) => health !== 'unknown') && all
    }, 'all rules to be evaluated')
    t.ok(healthy.length > 15)
    t.same(
      healthy.filter(({ health }) => health !== 'ok'),
      [],
    )
  },
)
