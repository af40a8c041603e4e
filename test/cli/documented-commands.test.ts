import { chmodSync, globSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { t } from 'tap'
import { findProgram } from '../../kernel/processes/find-program.ts'
import { postgres } from '../helpers/backends.ts'
import { deliver } from '../helpers/hooks.ts'
import { says, startModel } from '../helpers/model.ts'
import { opsServer, sessionsOf } from '../helpers/ops.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { exitOf, inLongRun, ROOT, spawnProgram } from '../helpers/program.ts'
import { startReceiver } from '../helpers/replays.ts'
import { secretKey } from '../helpers/senders.ts'
import { startServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'

// Runs the commands of README.md and docs/, block by block, as a reader pastes them into a shell.

/** Blocks that are not run, by their first line, and why. */
const NOT_RUN: Readonly<Record<string, string>> = {
  'npm ci': 'installs the repository; each run of the tests has done that',
  'npm test            #': 'is the suite itself, and others that take hours',
  'cc -shared -fPIC': 'runs the suite at another time of day',
  'npm run incidents -- --model-url': 'needs a model; test/incidents plays the recorded answers',
  'openssl rand -base64 32 | sudo': 'changes the host; test/deploy/install.test.ts installs',
  "alias gatehouse='sudo": 'needs the installed service',
  'curl -fsS -m 10 --retry 5 https://ops.example.com':
    'test/ops/watch/beats.test.ts calls heartbeats',
  'npx gatehouse forward http': 'runs until a signal; test/cli/forward.test.ts',
  'gatehouse forward --exec': 'runs until a signal; test/cli/forward.test.ts',
  'gatehouse recover github': 'asks senders; test/cli/recover.test.ts imitates them',
  'HOOKS_QUEUE_URL=': 'needs Redis; test/hooks/agents/queue.test.ts has one',
  'curl -sS http://go/.export': 'needs golink; test/cli/import-others.test.ts has its export',
  'curl -sS -H "X-Api-Key': 'needs Shlink and kutt; test/cli/import-others.test.ts',
  'claude mcp add': 'needs the assistants; test/links/transfer/tools.test.ts calls the endpoint',
  'journalctl -u gatehouse': 'needs the service in the journal',
  'OPS_NOTIFY_URL=https': 'starts servers; test/ops/notices.test.ts',
  'OPS_INVENTORY=inventory.json': 'starts a server; test/ops/agent/model.test.ts',
  'gatehouse approvals': 'needs an operation that waits; test/ops/agent/approvals.test.ts',
  'gatehouse restore': 'needs an empty database; test/cli/backup.test.ts',
  'gatehouse init': 'asks and writes files; test/cli/init.test.ts',
  'curl -si -H': 'asks the public address; test/deploy/recipes.test.ts',
  'DATABASE_URL=postgres': 'starts servers; test/cli/instances.test.ts',
  'pg_dump --format=custom': 'are the tools of PostgreSQL',
  'export OLD=postgres': 'needs two servers; test/long/logical-copy.test.ts runs these blocks',
  'psql "$OLD"': 'needs two servers; test/long/logical-copy.test.ts runs these blocks',
  'psql "$NEW"': 'needs two servers; test/long/logical-copy.test.ts runs these blocks',
  'npm ci --ignore-scripts && npm run build': 'takes minutes; test/long/packages.test.ts builds',
  'npm ci --ignore-scripts && npm run release': 'takes minutes; test/long/release.test.ts',
  'npm run test:long -- test/long/release': 'are tests that take long',
  'createdb gatehouse_trial': 'needs a release and a real database',
  'install -D -m 755 gatehouse-0.1.0': 'needs a release; test/long/release.test.ts',
  'podman load': 'needs a release; test/long/release.test.ts',
  'npm install --prefix gatehouse': 'needs a release; test/long/release.test.ts',
  'sudo systemctl disable': 'changes the host',
  'createdb --owner=gatehouse': 'changes the host; test/cli/db-move.test.ts moves',
}
/** The lines before it start a server, which runs already. */
const OTHER_TERMINAL = /^[^]*# in another terminal\n/
const KEY = 'correct horse'
const PROGRAMS = ['bash', 'curl', 'jq', 'openssl']

const PATH = process.env['PATH'] ?? ''
const missing = PROGRAMS.filter((program) => findProgram(program, PATH) === undefined)

interface Block {
  page: string
  text: string
}

function blocksOf(page: string) {
  const source = readFileSync(join(ROOT, page), 'utf8')
  const found = source.matchAll(/^( *)```sh\n([^]*?)^ *```$/gm)
  return [...found].map(([, indent = '', block = '']) => {
    const text = block.replaceAll(new RegExp(`^${indent}`, 'gm'), '')
    return { page, text }
  })
}

function reasonOf({ text }: Block) {
  const [first] = Object.entries(NOT_RUN).filter(([start]) => text.startsWith(start))
  return first?.[1]
}

/** A server with what the pages take for granted, and a shell to run blocks in. */
async function startReader(pages: readonly string[]) {
  const receiver = await startReceiver(t)
  const model = await startModel(t, () => says('All is well.'))
  const env = {
    ...(await postgres.env(t)),
    ...model.env,
    GATEHOUSE_SECRET_KEY: secretKey(),
    HOOKS_CODE_HOST_SECRET: KEY,
    HOOKS_REPLAY_TARGETS: '127.0.0.1',
    OPS_CHAT_API_KEY: KEY,
  }
  const server = await startServer(t, { env })
  const ops = opsServer(server, env)
  const folder = await temporaryFolder(t)
  const { url } = receiver
  const addressOf = (base: string) => new URL(base).host
  const shellEnv = {
    ...env,
    PATH: `${folder}/bin:${PATH}`,
    HOME: folder,
    HOOKS_ADDR: addressOf(server.hooks),
    LINKS_ADDR: addressOf(server.links),
    OPS_ADDR: addressOf(server.ops),
    KEY: 'a-key',
    SECRET: 'a secret that its sender made',
  }
  writeFiles(folder)
  for (let at = 0; at < 8; at++)
    await deliver(server.hooks, 'code_host', `{"at":${at}}`, {}, { secret: KEY })

  /** What a reader replaces: addresses of others, ids and files. */
  const replaced: readonly (readonly [string, string])[] = [
    ['http://127.0.0.1:8080', server.hooks],
    ['http://127.0.0.1:8081', server.links],
    ['http://127.0.0.1:8082', server.ops],
    ['https://example.com/hook', `${url}/hook`],
    ['ntfy+https://ntfy.example', `ntfy+${url}`],
    ['--host db-1 --port 5432', `--host 127.0.0.1 --port ${receiver.port}`],
    ['/run/secrets/erp', 'erp.txt'],
    ['/var/backups', '.'],
    ['2027-', `${new Date().getUTCFullYear() + 1}-`],
    ['1234', '8'],
    ['--confirm 37', '--confirm 8'],
    ['silences remove 3', 'silences remove 1'],
  ]

  async function run({ text }: Block) {
    await until(async () => {
      const sessions = await sessionsOf(ops)
      return sessions.every(({ status }) => status !== 'running')
    }, 'no session to run')
    let block = text.replace(OTHER_TERMINAL, '')
    for (const [from, to] of replaced) block = block.replaceAll(from, to)
    const kept = 'if [ -e kept ]; then . ./kept; fi'
    const keep = 'if [ -n "${TOKEN-}" ]; then declare -p TOKEN > kept; fi'
    const script = `set -e -o pipefail\ncd '${folder}'\n${kept}\n${block}\n${keep}\n`
    const child = spawnProgram(['-c', script], shellEnv, ['bash'])
    child.stdin.end()
    const [{ code }, stdout, stderr] = await Promise.all([
      exitOf(child),
      textOf(child.stdout),
      textOf(child.stderr),
    ])
    return { code, output: `${block}\n${stdout}\n${stderr}` }
  }
  return { pages, run }
}

/** The programs that blocks call, and the files that they name. */
function writeFiles(folder: string) {
  const programs = {
    gatehouse: `exec '${process.execPath}' '${ROOT}/server.ts' "$@"`,
    npx: 'exec "$@"',
    // A refusal ends the block.
    curl: `exec '${findProgram('curl', PATH)}' --fail-with-body "$@"`,
  }
  const files = {
    'erp.txt': `whsec_${Buffer.alloc(32, 'k').toString('base64')}`,
    'headers.txt': 'X-Key: abc\n',
    'links.json': '{"Short":"who","Long":"https://who.example.com/","Owner":"bob@example.com"}\n',
    'page.json': '{"type":"http","url":"http://127.0.0.1:9/"}',
    'password.txt': 'a password',
    'token.txt': 'tk_a-token',
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  symlinkSync(join(ROOT, 'integrations'), join(folder, 'integrations'))
  mkdirSync(join(folder, 'bin'))
  for (const [name, line] of Object.entries(programs)) {
    writeFileSync(join(folder, 'bin', name), `#!/bin/sh\n${line}\n`)
    chmodSync(join(folder, 'bin', name), 0o755)
  }
}

const GUIDES = globSync('docs/*.md', { cwd: ROOT }).toSorted()
const readers = [await startReader(['README.md'])]
// Each command is a process of its own: together they take a minute.
await inLongRun(t, 'the guides', async () => void readers.push(await startReader(GUIDES)))

t.test('each reason belongs to a block', async (t) => {
  const all = ['README.md', ...GUIDES].flatMap(blocksOf)
  t.ok(all.length > 50, 'the blocks were found')
  for (const start of Object.keys(NOT_RUN)) {
    t.ok(
      all.some(({ text }) => text.startsWith(start)),
      start,
    )
  }
})

for (const { pages, run } of readers) {
  for (const page of pages) {
    const blocks = blocksOf(page).filter((block) => reasonOf(block) === undefined)
    if (blocks.length === 0) continue
    t.test(`the commands of ${page}`, async (t) => {
      for (const block of blocks) {
        const [name = ''] = block.text.split('\n')
        const needed = missing.filter((program) => block.text.includes(program))
        const skip = needed.length > 0 && `${needed.join(', ')} is not installed`
        await t.test(name, { skip }, async (t) => {
          const { code, output } = await run(block)
          t.equal(code, 0, output)
        })
      }
    })
  }
}
