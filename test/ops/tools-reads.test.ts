import { spawnSync } from 'node:child_process'
import { chmodSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { docker, framed, startEngine } from '../helpers/containers.ts'
import { MODEL_KEY, startModel } from '../helpers/model.ts'
import type { Call } from '../helpers/model.ts'
import { ended, inventoryFile, startOps } from '../helpers/ops.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { useTools } from '../helpers/tools.ts'
import type { ToolUser } from '../helpers/tools.ts'
import { deploymentParts, journalWriter, lacks, onPath } from '../runner/system-parts.ts'

const [, postgres] = backends
const path = process.env['PATH'] ?? ''

/** A server with this inventory, whose scheduled session has ended. */
async function startReads(t: Test, inventory: object): Promise<ToolUser> {
  const model = await startModel(t)
  const OPS_INVENTORY = await inventoryFile(t, inventory)
  const ops = await startOps(t, postgres, { ...model.env, OPS_INVENTORY })
  await ended(ops)
  return { model, ops }
}

/** Entries of a journal, a minute apart, the last one a minute ago. */
type Entry = readonly [unit: string, message: string]

/** Makes a journal, which `journalctl` on the path then reads, and nothing else. */
async function writeJournal(t: Test, entries: readonly Entry[]): Promise<void> {
  const folder = await temporaryFolder(t, 'journal')
  const [journal, source] = [join(folder, 'test.journal'), join(folder, 'source')]
  const id = '0123456789abcdef0123456789abcdef'
  const first = Date.now() - entries.length * 60_000
  const text = entries.map(([unit, message], at) => {
    const bytes = Buffer.from(message)
    const size = Buffer.alloc(8)
    size.writeBigUInt64LE(BigInt(bytes.length))
    const fields = [
      `__REALTIME_TIMESTAMP=${(first + at * 60_000) * 1_000}\n__MONOTONIC_TIMESTAMP=${at}`,
      `_BOOT_ID=${id}\n_MACHINE_ID=${id}\n_HOSTNAME=web-1\n_PID=7\nPRIORITY=${at === 0 ? 3 : 6}`,
      `_SYSTEMD_UNIT=${unit}\nSYSLOG_IDENTIFIER=shop\nMESSAGE\n`,
    ]
    // The export format of systemd: a value of any bytes has its length before it.
    return Buffer.concat([Buffer.from(fields.join('\n')), size, bytes, Buffer.from('\n\n')])
  })
  writeFileSync(source, Buffer.concat(text))
  const made = spawnSync(journalWriter() ?? '', ['-o', journal, source])
  t.equal(made.status, 0, String(made.stderr))
  const programs = {
    journalctl: `exec ${onPath('journalctl')} --file=${journal} "$@"`,
    // Without a sandbox, whose /tmp has no journal.
    bwrap: 'exit 1',
  }
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`)
    chmodSync(join(folder, name), 0o755)
  }
  process.env['PATH'] = `${folder}${delimiter}${path}`
  t.teardown(() => (process.env['PATH'] = path))
}

t.test('logs of units', { skip: lacks(deploymentParts.journal) }, async (t) => {
  const key = MODEL_KEY
  await writeJournal(t, [
    ['shop.service', 'started\nwith two lines'],
    ['other.service', 'not of the shop'],
    ['shop.service', 'disk .* 90 %'],
    ['shop.service', `key ${key} is used`],
    ['shop.service', 'disk full'],
  ])
  const logs = [{ name: 'web', unit: 'shop.service' }, { unit: 'quiet.service' }]
  const services = [{ name: 'shop', checks: [], logs }]
  const user = await startReads(t, { services, journal: false })
  const log = (args: object): Call => ['read_log', { service: 'shop', ...args }]
  const web = (args: object): Call => log({ log: 'web', ...args })
  const answers = await useTools(t, user, [
    web({}),
    web({ lines: 2 }),
    web({ minutes: 2 }),
    web({ contains: 'disk' }),
    web({ contains: 'disk', lines: 1 }),
    web({ contains: 'd.*k' }),
    // Nobody finds a secret by guessing at its beginning.
    web({ contains: key.slice(0, 6) }),
    log({ log: 'quiet.service' }),
    log({}),
    log({ log: 'other.service' }),
    ['read_log', { service: 'nothing' }],
    ['journal', { unit: 'other.service' }],
    ['list_services', {}],
  ])
  const [all = ''] = answers
  const line = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+\d{4} web-1 shop\[7\]: /gm
  t.same(all.replaceAll(line, '').replaceAll(/\n +/g, '\n').split('\n'), [
    ...['started', 'with two lines', 'disk .* 90 %', 'key «redacted» is used', 'disk full'],
  ])
  t.match(answers, [
    all,
    /^\S+ web-1 shop\[7\]: key «redacted» is used\n\S+ web-1 shop\[7\]: disk full$/,
    /^\S+ web-1 shop\[7\]: disk full$/,
    /^\(searched: 5 lines\)\n.*disk \.\* 90 %\n.*disk full$/,
    /^\(older lines left out: 1; searched: 5 lines\)\n.*disk full$/,
    'Not in 5 lines.',
    'Not in 5 lines.',
    'No lines.',
    'Error: Name a log of "shop"; there are: "web", "quiet.service".',
    'Error: Name a log of "shop"; there are: "web", "quiet.service".',
    'Error: There is no service "nothing".',
    'Error: The inventory allows the logs that it names alone: use read_log.',
    'shop\n  log "web"\n  log "quiet.service"',
  ])

  const open = await startReads(t, { services })
  const [others = '', urgent = '', found = ''] = await useTools(t, open, [
    ['journal', { unit: 'other.service' }],
    ['journal', { errors_only: true }],
    ['journal', { contains: 'full' }],
  ])
  t.match(others, /: not of the shop$/, 'the contract has the whole journal')
  t.match(urgent, /: started\n +with two lines$/)
  t.match(found, /^\(searched: 6 lines\)\n.*disk full$/)
})

t.test('logs of containers', async (t) => {
  const count = 12_000
  const at = '2026-11-26T04:00:00.123456789Z'
  const running = { Status: 'running' }
  const asked: URLSearchParams[] = []
  /** The newest lines, each of 1 KB. */
  const long = (query: URLSearchParams): string => {
    asked.push(query)
    const tail = Number(query.get('tail'))
    const numbers = Array.from({ length: tail }, (_, before) => count - tail + before)
    return framed(...numbers.map((number) => `${at} line ${number} ${'x'.repeat(1_000)}\n`))
  }
  const terminal = Buffer.from(`${at} \u001b[31mred\u001b[0m\r\n${at} key ${MODEL_KEY}\r\n`)
  const engine = {
    version: '1.51',
    list: [],
    unhealthy: [],
    containers: {
      web: docker('web', running),
      long: docker('long', running),
      tty: docker('tty', running, { Config: { Tty: true } }),
      other: docker('other', running),
    },
    logs: {
      web: framed(`${at} GET /\n`, `${at} GET `, '/basket\n'),
      tty: terminal.toString('base64'),
      long,
      other: framed('of another team\n'),
    },
  }
  const { socket, requests } = await startEngine(t, engine)
  const named = ['web', 'long', 'tty', 'gone']
  const away = { name: 'away', container: 'web', socket: '/nowhere.sock' }
  const logs = [...named.map((container) => ({ container, socket })), away]
  const user = await startReads(t, { services: [{ name: 'shop', checks: [], logs }] })
  const log = (name: string, args: object = {}): Call => {
    return ['read_log', { service: 'shop', log: name, ...args }]
  }
  const answers = await useTools(t, user, [
    log('web'),
    log('web', { minutes: 5 }),
    log('tty'),
    log('long', { contains: 'line 11999' }),
    log('long', { lines: 500 }),
    log('gone'),
    log('away'),
    log('other'),
    log('../web'),
  ])
  t.match(answers, [
    `${at} GET /\n${at} GET /basket`,
    `${at} GET /\n${at} GET /basket`,
    `${at} red\n${at} key «redacted»`,
    /^\(searched: the newest 1250 lines\)\n\S+ line 11999 x{1000}$/,
    /^\(older lines left out: 489\)\n\S+ line 11989 /,
    'Error: There is no such container.',
    /^Error: not looked at: \/nowhere\.sock: no such file/,
    /^Error: Name a log of "shop"; there are: "web", "long", "tty", "gone", "away"\.$/,
    /^Error: Name a log of/,
  ])
  t.same(
    asked.map((query) => query.get('tail')),
    ['10000', '1250', '500'],
    'with fewer lines the newest ones are read',
  )
  const [since = ''] = requests.flatMap((request) => /since=(\d+)/.exec(request)?.[1] ?? [])
  t.ok(Math.abs(Number(since) - Date.now() / 1_000 + 300) < 60, 'five minutes ago')
  t.ok(requests.every((request) => /^GET \S*\/(_ping|web|long|tty|gone)/.test(request)))
})

t.test('an inventory whose logs are wrong is refused', async (t) => {
  const unit = 'shop.service'
  const either = 'must have either unit or container'
  const cases = [
    [{ name: 'shop' }, `/services/0/logs/0 ${either}`],
    [{ unit, container: 'shop' }, `/services/0/logs/0 ${either}`],
    [
      { unit, socket: '/run/docker.sock' },
      '/services/0/logs/0/socket must not be there with unit',
    ],
    [{ unit: '*' }, '/services/0/logs/0/unit '],
    [{ unit: '--file=/etc/passwd' }, '/services/0/logs/0/unit '],
    [{ container: '../other' }, '/services/0/logs/0/container '],
    [{ path: '/var/log' }, '/services/0/logs/0/path is not known'],
  ] as const
  const model = await startModel(t)
  for (const [log, problem] of cases) {
    const services = [{ name: 'shop', checks: [], logs: [log] }]
    const OPS_INVENTORY = await inventoryFile(t, { services })
    const start = startOps(t, postgres, { ...model.env, OPS_INVENTORY })
    await t.rejects(start, { message: `is wrong: ${problem}` }, JSON.stringify(log))
  }
})
