import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { delimiter, join } from 'node:path'
import { t } from 'tap'
import { postgres } from '../../helpers/backends.ts'
import { calls, says, startModel, type Call } from '../../helpers/model.ts'
import { ended, inventoryFile, opsServer, runSession, startOps } from '../../helpers/ops.ts'
import { temporaryFolder, type Owner } from '../../helpers/owner.ts'
import { openDescriptors } from '../../helpers/process-figures.ts'
import type { Env } from '../../helpers/program.ts'
import { startReceiver } from '../../helpers/replays.ts'
import { startServer } from '../../helpers/server.ts'
import { useTools } from '../../helpers/tools.ts'
import { deploymentParts, lacks } from '../../runner/system-parts.ts'

const path = process.env['PATH'] ?? ''
const noSandbox = lacks(deploymentParts.bubblewrap) || (!sandboxWorks() && 'bwrap is not allowed')
const model = await startModel(t)
const variables = { ...model.env, ...(await postgres.env(t)) }
// What a command must not get of our own environment.
Object.assign(process.env, variables)

type Options = {
  /** Programs that may not be run; there are no others then, not even those of this machine. */
  forbidden?: readonly string[]
  /** The commands that the inventory allows. */
  readonly?: readonly object[]
  env?: Env
}

function sandboxWorks() {
  const argv = ['--ro-bind', '/', '/', '--unshare-pid', '--unshare-net', '--proc', '/proc', 'true']
  return spawnSync('bwrap', argv).status === 0
}

/** Calls tools of tier 2 in one turn, on a server whose path begins with a folder of programs. */
async function use(
  t: Owner,
  programs: Readonly<Record<string, string>>,
  list: readonly Call[],
  { forbidden = [], readonly = [['env']], env = {} }: Options = {},
) {
  const folder = await temporaryFolder(t, 'programs')
  for (const [name, text] of Object.entries(programs)) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${text}\n`)
    chmodSync(join(folder, name), forbidden.includes(name) ? 0o644 : 0o755)
  }
  let answers: readonly string[] = []
  let [before, after] = [0, 0]
  model.answer(({ step, results }) => {
    if (step === 0) {
      before = openDescriptors(process.pid)
      return calls(...list)
    }
    after = openDescriptors(process.pid)
    answers = results
    return says('Done.')
  })
  process.env['PATH'] = forbidden.length > 0 ? folder : `${folder}${delimiter}${path}`
  t.teardown(() => (process.env['PATH'] = path))
  const inventory = await inventoryFile(t, { services: [], readonly })
  const ops = await startOps(t, postgres, { ...variables, OPS_INVENTORY: inventory, ...env })
  await ended(ops)
  const session = await runSession(ops, 'look', 2)
  if (session.status !== 'completed') throw new Error(`the session ended as ${session.status}`)
  await ops.server.stop()
  return {
    answers,
    logs: ops.server.logs(),
    /** The commands that ran in an imitated bwrap. */
    ran: () => readFileSync(join(folder, 'bwrap.log'), 'utf8').trim().split('\n'),
    /** How many more descriptors were open after the calls than before. */
    opened: after - before,
  }
}

const run = (...argv: readonly string[]): Call => ['run_readonly', { argv }]

t.test('the journal is asked for what was meant, and commands get nothing secret', async (t) => {
  const programs = {
    journalctl: 'echo "$@"',
    big: "head -c 50000 /dev/zero | tr '\\0' x",
    leaves: 'setsid sleep 300 &\necho left',
    stays: 'setsid sleep 300 &\nsleep 0.2\necho left',
    bwrap: 'exit 1',
  }
  const list: readonly Call[] = [
    ['journal', { unit: 'shop@1.service', lines: 5, minutes: 10, errors_only: true }],
    ['journal', {}],
    run('env'),
    ...Array.from({ length: 6 }, () => run('big')),
    run('leaves'),
    ...Array.from({ length: 8 }, () => run('stays')),
  ]
  const { answers, opened, logs } = await use(t, programs, list, {
    readonly: [['env'], ['big'], ['leaves'], ['stays']],
    env: { OPS_UNSANDBOXED: 'true' },
  })
  t.match(logs.join('\n'), /no sandbox.*"commands":"not sandboxed"/)
  const usual = '--no-pager --quiet --output=short-iso --reverse'
  t.same(answers.slice(0, 2), [
    `${usual} --lines=5 --unit=shop@1.service --since=-10min --priority=err`,
    `${usual} --lines=100`,
  ])
  t.match(answers[2], /^STARTED_BY_GATEHOUSE=[0-9a-f-]{36}$/m, 'the mark by which it is found')
  t.notMatch(answers[2], /OPS_MODEL|DATABASE_URL|GATEHOUSE_/)
  const whole = answers.slice(3, 9).filter((text) => /x{16000}\n\(34000 char/.test(text))
  t.equal(whole.length, 6, 'all that a command has said is read')
  t.same(new Set(answers.slice(9)), new Set(['left']), 'what it leaves behind holds nothing up')
  t.ok(opened < 8, `${opened} descriptors more, two pipes for each command that leaves something`)
})

const A_LINE = 'a line of the journal'
const JOURNALCTL = `echo ${A_LINE}`
/** Notes its arguments, and runs the command. */
const BWRAP = 'echo "$@" >> "$0.log"\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"'

t.test('commands run in bwrap where it works', async (t) => {
  const list: readonly Call[] = [
    ['journal', {}],
    run('echo', 'x'),
    run('echo', 'network', 'x'),
    run(),
  ]
  const readonly = [{ argv: ['echo'] }, { argv: ['echo', 'network'], network: true }]
  const programs = { bwrap: BWRAP, journalctl: JOURNALCTL }
  const used = await use(t, programs, list, { readonly })
  t.match(used.answers, [
    A_LINE,
    'x',
    'network x',
    'with whatever follows: echo; echo network (with network).',
  ])
  const [probe = '', ...ran] = used.ran()
  t.match(probe, / --unshare-net .* -- true$/, 'it is tried at the start')
  t.match(ran, [/ -- journalctl --no-pager/, / -- echo x$/, / -- echo network x$/])
  const sandboxed = /^--ro-bind \/ \/ .*--unshare-pid .*--cap-drop ALL .*--die-with-parent /
  for (const line of ran) t.match(line, sandboxed)
  const networkless = ran.map((line) => line.includes('--unshare-net --tmpfs /run '))
  t.same(networkless, [true, true, false])
  t.notMatch(used.logs.join('\n'), 'sandbox')
})

t.test('without a sandbox commands are off, and the log says so at the start', async (t) => {
  const list: readonly Call[] = [run('env'), ['journal', {}]]
  const remedy = /The operators may install bubblewrap, or set OPS_UNSANDBOXED=true\.$/
  const cases = [
    [{ bwrap: 'echo no namespaces; exit 1' }, [], 'no namespaces'],
    [{}, ['bwrap'], 'bwrap is not installed'],
  ] as const
  for (const [programs, forbidden, problem] of cases) {
    const all = { ...programs, journalctl: JOURNALCTL }
    const { answers, logs } = await use(t, all, list, { forbidden })
    t.match(answers[0], `Error: it was not run: commands are off, because bwrap can't`)
    t.match(answers[0], problem)
    t.match(answers[0], remedy)
    t.equal(answers[1], A_LINE, 'its arguments are ours')
    const at = logs.findIndex((line) => line.includes('no sandbox for commands'))
    t.match(logs[at], problem)
    t.match(logs[at], '"commands":"off"')
    const call = logs.findIndex((line) => line.includes('/api/v1/sessions/trigger'))
    t.ok(at < call || call === -1, 'before any session calls a command')
    t.equal(logs.filter((line) => line.includes('sandbox')).length, 1, 'once')
  }
})

t.test('a command does not run while it is not known whether it can be sandboxed', async (t) => {
  // Too slow the first time, as on a machine that has no time for it.
  const slow = '[ -e "$0.tried" ] || { : > "$0.tried"; exec sleep 60; }'
  const programs = { bwrap: `${slow}\n${BWRAP}`, journalctl: JOURNALCTL }
  const list: readonly Call[] = [
    ['journal', { lines: 1 }],
    ['journal', { lines: 2 }],
  ]
  // Without commands nothing is tried at the start.
  const { answers, ran, logs } = await use(t, programs, list, { readonly: [] })
  t.match(answers[0], /^Error: it was not run: .* sandboxed is not known yet: it took over 5 s$/)
  t.equal(answers[1], A_LINE, 'the next call tries again')
  t.match(ran(), [/ -- true$/, / -- journalctl .* --lines=2$/], 'and runs in the sandbox')
  const said = logs.filter((line) => line.includes('sandbox'))
  t.match(said, ['sandbox not tried'])
})

/** What a command tries. It prints each outcome: `ok`, or the code of the error. */
const ATTACK = `
const { connect } = require('node:net')
const { existsSync, writeFileSync } = require('node:fs')
const [port, socket, pid, file] = process.argv.slice(1)
const reach = (options) => new Promise((resolve) => {
  const client = connect(options, () => { client.destroy(); resolve('ok') })
  client.on('error', ({ code }) => resolve(code))
})
const attempt = (work) => { try { work(); return 'ok' } catch ({ code }) { return code } }
Promise.all([reach({ host: '127.0.0.1', port }), reach({ path: socket })]).then(([tcp, unix]) => {
  console.log(JSON.stringify({
    tcp, unix: unix === 'ok' ? 'ok' : 'refused',
    signal: attempt(() => process.kill(Number(pid), 'SIGKILL')),
    seen: existsSync('/proc/' + pid),
    write: attempt(() => writeFileSync(file, 'x')),
  }))
})`

/** A folder that is not below /tmp, of which a command has one of its own. */
function outsideTmp(t: Owner) {
  const folder = mkdtempSync('/var/tmp/gatehouse-test-')
  t.teardown(() => rmSync(folder, { recursive: true }))
  return folder
}

t.test(
  'find with -exec reaches no network, no socket and no other process',
  { skip: noSandbox },
  async (t) => {
    const { port, connections } = await startReceiver(t)
    const victim = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 60_000)'])
    t.teardown(() => void victim.kill('SIGKILL'))
    await once(victim, 'spawn')
    const outside = outsideTmp(t)
    const [socket, file] = [join(outside, 'links.sock'), join(outside, 'written')]

    // Nor may the program that it runs be below /tmp: this checkout may be.
    const node = join(outside, 'node')
    copyFileSync(process.execPath, node)
    const words = [node, '-e', ATTACK, port, socket, victim.pid, file].map(String)
    const find = run('find', '/etc/passwd', '-exec', ...words, ';')
    const readonly = [['find'], { argv: [node], network: true }]
    const env = {
      ...variables,
      LINKS_ADDR: `unix:${socket}`,
      OPS_INVENTORY: await inventoryFile(t, { services: [], readonly }),
    }
    const server = await startServer(t, { services: ['ops', 'links'], env })
    const ops = opsServer(server, env)
    await ended(ops)
    t.ok(existsSync(socket), 'the server listens on a unix socket')
    const list = [find, run(...words)]
    const [alone = '', withNetwork = ''] = await useTools(t, { model, ops }, list)
    const nobody = { signal: 'ESRCH', seen: false, write: 'EROFS' }
    t.same(reportIn(alone), { tcp: 'ECONNREFUSED', unix: 'refused', ...nobody })
    t.same(reportIn(withNetwork), { tcp: 'ok', unix: 'refused', ...nobody })
    t.equal(connections(), 1, 'of the command that may')
    t.equal(victim.exitCode ?? victim.signalCode, null, 'the other process lives')
    t.notOk(existsSync(file))
  },
)

t.test(
  'no command sees the data directory, credentials or the environment file',
  { skip: noSandbox },
  async (t) => {
    const outside = outsideTmp(t)
    for (const name of ['data', 'credentials', 'data/ops/repos/shop']) {
      mkdirSync(join(outside, name), { recursive: true })
      writeFileSync(join(outside, name, 'file'), `of ${name}`)
    }
    // As systemd links a state directory.
    const data = join(outside, 'link')
    symlinkSync('data', data)
    const envFile = join(outside, 'gatehouse.env')
    writeFileSync(envFile, '# of the environment file')

    const script = [
      `cd ${outside}`,
      'ls -A data credentials',
      `cat ${envFile} || echo hidden`,
      'cat link/ops/repos/shop/file',
    ].join('; ')
    const argv = ['sh', '-c', script]
    const { answers } = await use(t, {}, [run(...argv), run('env', ...argv)], {
      readonly: [['sh'], { argv: ['env'], network: true }],
      env: {
        GATEHOUSE_DATA_DIR: data,
        GATEHOUSE_ENV_FILE: envFile,
        CREDENTIALS_DIRECTORY: join(outside, 'credentials'),
      },
    })
    for (const answer of answers) {
      t.match(answer, 'credentials:\n\ndata:\nops\n', 'empty but for the repositories')
      t.match(answer, 'hidden', 'the environment file')
      t.notMatch(answer, 'of the environment file')
      t.match(answer, 'of data/ops/repos/shop', 'the repositories are for agents')
    }
    t.equal(answers.length, 2)
  },
)

/**
 * What the attack reports. `find` warns of a working directory below /tmp, which the sandbox does not have; the report
 * may come within that line.
 */
function reportIn(output: string) {
  const [report] = /\{.*\}/.exec(output) ?? []
  if (report === undefined) throw new Error(`no report in "${output}"`)
  return JSON.parse(report)
}
