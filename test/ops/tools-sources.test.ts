import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { MODEL_KEY, startModel } from '../helpers/model.ts'
import type { Call } from '../helpers/model.ts'
import { ended, inventoryFile, startOps } from '../helpers/ops.ts'
import { startPrometheus } from '../helpers/prometheus.ts'
import { startReceiver } from '../helpers/replays.ts'
import { secret } from '../helpers/secrets.ts'
import { useTools } from '../helpers/tools.ts'
import type { ToolUser } from '../helpers/tools.ts'
import { deploymentParts, lacks } from '../runner/system-parts.ts'

const [, postgres] = backends

/** A server with these sources, whose scheduled session has ended. */
async function startSources(t: Test, sources: readonly object[]): Promise<ToolUser> {
  const model = await startModel(t)
  const OPS_INVENTORY = await inventoryFile(t, { services: [], sources })
  const ops = await startOps(t, postgres, { ...model.env, OPS_INVENTORY })
  await ended(ops)
  return { model, ops }
}

const metrics = (query: string, more: object = {}): Call => ['query_metrics', { query, ...more }]
const logs = (query: string, more: object = {}): Call => ['query_logs', { query, ...more }]

t.test('Prometheus', { skip: lacks(deploymentParts.prometheus) }, async (t) => {
  const now = Math.floor(Date.now() / 1_000)
  const minutes = Array.from({ length: 90 }, (_, at) => now - (89 - at) * 60)
  const label = `job="say \\"hello\\"\\nnext",key="${MODEL_KEY}"`
  const { url } = await startPrometheus(t, [
    ...minutes.map((seconds, at) => ['disk_free{path="/"}', 90 - at, seconds] as const),
    ...Array.from({ length: 300 }, (_, at) => [`many{number="${at}"}`, at, now] as const),
    [`hostile{${label}}`, 1, now],
  ])
  const source = { name: 'main', type: 'prometheus', url, description: 'all hosts' }
  const user = await startSources(t, [source])
  const answers = await useTools(t, user, [
    metrics('disk_free'),
    metrics('disk_free', { minutes: 10 }),
    metrics('disk_free', { minutes: 3_000 }),
    metrics('many'),
    metrics('hostile'),
    metrics('count(many)', { source: 'main' }),
    metrics('1 + 1'),
    metrics('nothing_like_it'),
    metrics('disk_free{'),
    metrics('disk_free', { source: 'other' }),
    ['list_services', {}],
  ])
  const time = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`
  t.match(answers, [
    new RegExp(`^1 series:\ndisk_free{path="/"} ${time} 1$`),
    new RegExp(`^1 series from ${time} to ${time}, a point every 15 s:\ndisk_free{path="/"}\n  `),
    / a point every 3000 s:\ndisk_free\{path="\/"\}\n {2}\d\d-\d\dT\d\d:\d\d \d/,
    /^300 series:\nmany\{number="\d+"\} [^]*\n\(\d+ more are left out: narrow the query, as by topk\)$/,
    new RegExp(
      `^1 series:\nhostile{job="say \\\\"hello\\\\"\\\\nnext", key="«redacted»"} ${time} 1$`,
    ),
    new RegExp(`^1 series:\n{} ${time} 300$`),
    new RegExp(`^${time} 2$`),
    'No series.',
    /^Error: "main" answered 400: .*parse error/,
    'Error: Name a source of the type prometheus; there are: "main".',
    'source "main" (prometheus): all hosts',
  ])
  const points = (answers[1] ?? '').split('\n').at(-1)?.split(', ') ?? []
  t.equal(points.length, 41, 'ten minutes in steps of 15 s')
  t.match(points, [/^ {2}\d\d:\d\d:\d\d \d+$/])
})

t.test('Loki, by its documentation', async (t) => {
  const at = (second: number): string => `${1_795_000_000 + second}123456789`
  const asked: URL[] = []
  const headers: unknown[] = []
  const streams = [
    {
      stream: { app: 'shop', host: 'web-1' },
      values: [
        [at(3), 'third'],
        [at(1), `first ${MODEL_KEY}\u001b[31m`],
      ],
    },
    { stream: { app: 'shop', host: 'web-2' }, values: [[at(2), 'second', { trace: '1' }]] },
  ]
  const token = secret('loki-token')
  const matrix = [{ metric: { level: 'warn' }, values: [[1_795_000_000, '137.95']] }]
  const answers: Readonly<Record<string, object>> = {
    '{app="shop"}': { resultType: 'streams', result: streams },
    'sum(rate({app="shop"}[5m]))': { resultType: 'matrix', result: matrix },
    '{app="none"}': { resultType: 'streams', result: [] },
  }
  const loki = await startReceiver(t, ({ path, headers: sent }, response) => {
    const url = new URL(path, 'http://loki')
    asked.push(url)
    headers.push(sent['x-scope-orgid'])
    const data = answers[url.searchParams.get('query') ?? '']
    if (data !== undefined) return void response.end(JSON.stringify({ status: 'success', data }))
    // Loki refuses in plain text.
    response.writeHead(400).end(`parse error at line 1, for ${sent.authorization}`)
  })
  const shared = { authorization: `Bearer ${token}`, 'X-Scope-OrgID': 'shop' }
  const source = { name: 'logs', type: 'loki', url: `${loki.url}/`, headers: shared }
  const user = await startSources(t, [source])
  const said = await useTools(t, user, [
    logs('{app="shop"}', { minutes: 30, lines: 20 }),
    logs('sum(rate({app="shop"}[5m]))'),
    logs('{app="none"}'),
    logs('{app='),
    metrics('up'),
  ])
  t.match(said, [
    [
      '2026-11-18T11:06:41.123Z {app="shop", host="web-1"} first «redacted» [31m',
      '2026-11-18T11:06:42.123Z {app="shop", host="web-2"} second',
      '2026-11-18T11:06:43.123Z {app="shop", host="web-1"} third',
    ].join('\n'),
    /^1 series from .*, a point every 60 s:\n\{level="warn"\}\n {2}11:06:40 137\.95$/,
    'No lines.',
    'Error: "logs" answered 400: parse error at line 1, for «redacted»',
    'Error: The inventory has no source of the type prometheus.',
  ])
  t.same([...new Set(asked.map(({ pathname }) => pathname))], ['/loki/api/v1/query_range'])
  t.same(new Set(headers), new Set(['shop']))
  const { limit, direction, step, start, end } = Object.fromEntries(asked[0]?.searchParams ?? [])
  t.same([limit, direction, step], ['20', 'backward', '30s'])
  t.equal((BigInt(end ?? 0) - BigInt(start ?? 0)) / 1_000_000_000n, 1_800n)
})

t.test('a source that is away, redirects, or answers without end', async (t) => {
  const elsewhere = await startReceiver(t)
  const redirecting = await startReceiver(t, (_request, response) => {
    response.writeHead(302, { location: elsewhere.url }).end()
  })
  const endless = await startReceiver(t, (_request, response) => {
    const piece = 'x'.repeat(100_000)
    const write = (): void => {
      while (!response.destroyed && response.write(piece));
    }
    response.on('drain', write)
    write()
  })
  const silent = await startReceiver(t, () => new Promise(() => undefined))
  const odd = await startReceiver(t, (_request, response) => {
    response.end(JSON.stringify({ status: 'success', data: { resultType: 'vector', result: 7 } }))
  })
  const urls = { redirecting, endless, silent, odd }
  const sources = Object.entries(urls).map(([name, { url }]) => {
    return { name, type: 'prometheus', url, ...(name === 'silent' && { timeout_s: 0.2 }) }
  })
  const away = { name: 'away', type: 'prometheus', url: 'http://127.0.0.1:1' }
  const user = await startSources(t, [...sources, away])
  const names = [...Object.keys(urls), 'away']
  const answers = await useTools(t, user, [
    ...names.map((source) => metrics('up', { source })),
    metrics('up'),
  ])
  t.match(answers, [
    'Error: "redirecting" answered 302: ',
    'Error: The answer is over 4 MiB: narrow the query.',
    `Error: "silent" can't be asked: no answer within 0.2 s`,
    'No series.',
    /^Error: "away" can't be asked: connect ECONNREFUSED/,
    /^Error: Name a source of the type prometheus; there are: "redirecting", "endless", /,
  ])
  t.equal(elsewhere.connections(), 0)
})

t.test('an inventory whose sources are wrong is refused', async (t) => {
  const good = { name: 'main', type: 'prometheus', url: 'http://127.0.0.1:9090' }
  const plain = '/sources/0/url must be a URL without user, password, ? and #'
  const cases = [
    [[{ ...good, url: 'http://me:pass@host' }], `is wrong: ${plain}`],
    [[{ ...good, url: 'http://host/?x=' }], `is wrong: ${plain}`],
    [[{ ...good, url: 'ftp://host' }], 'is wrong: /sources/0/url '],
    [[{ ...good, type: 'graphite' }], 'is wrong: /sources/0/type '],
    [[{ ...good, headers: { 'a b': 'c' } }], 'is wrong: /sources/0/headers must be names of HTTP'],
    [[{ ...good, headers: { a: 'b\nc' } }], 'is wrong: /sources/0/headers must be names of HTTP'],
    [[{ ...good, token: 'x' }], 'is wrong: /sources/0/token is not known'],
    [[good, good], 'has source "main" twice'],
  ] as const
  const model = await startModel(t)
  for (const [sources, problem] of cases) {
    const OPS_INVENTORY = await inventoryFile(t, { services: [], sources })
    const start = startOps(t, postgres, { ...model.env, OPS_INVENTORY })
    await t.rejects(start, { message: problem }, JSON.stringify(sources))
  }
})
