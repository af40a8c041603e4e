import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'
import postgres from 'postgres'
import t, { type Test } from 'tap'
import { EmbeddedLockedError, lockDirectory, openEmbedded } from '../../db/embedded/open.ts'
import { embedded } from '../helpers/backends.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { childrenOf, isRunning } from '../helpers/process-figures.ts'
import { ENGINE_FLAGS, inLongRun } from '../helpers/program.ts'

const open = new URL('../../db/embedded/open.ts', import.meta.url).href
const client = import.meta.resolve('postgres')

// What every child starts with: an engine, a client, and a way to speak that survives kill -9.
const prelude = `
  import fs from 'node:fs'
  import postgres from '${client}'
  import { openEmbedded } from '${open}'
  const say = (text) => fs.writeSync(1, text + '\\n')
  const engine = await openEmbedded(process.argv[2])
  const sql = postgres({ socket: engine.socket, host: 'x', user: 'postgres', max: 1, onnotice: () => {} })
  await sql\`create table if not exists kept (id text primary key)\`
  say('ready')`

interface ChildOptions {
  /** A module that every thread of the child loads first. */
  preload?: string
  /** A word or a file, for the child as `process.env.MARK`. */
  mark?: string
}

function child(code: string, directory: string, { preload, mark = '' }: ChildOptions = {}) {
  const load =
    preload === undefined ? [] : [`--import=data:text/javascript,${encodeURIComponent(preload)}`]
  // A file, because a worker thread inherits the flags that go with --eval.
  const program = path.join(path.dirname(directory), 'child.mjs')
  fs.writeFileSync(program, code)
  const env = { PATH: process.env['PATH'], MARK: mark }
  return spawn(process.execPath, [...ENGINE_FLAGS, ...load, program, directory], { env })
}

/** Reads a child's lines until one satisfies `done`; returns all of them. */
async function lines(
  from: ChildProcessWithoutNullStreams,
  done: (line: string, count: number) => boolean,
) {
  let text = ''
  let errors = ''
  from.stderr.on('data', (chunk) => (errors += String(chunk)))
  for await (const chunk of from.stdout.iterator({ destroyOnReturn: false })) {
    text += String(chunk)
    const whole = text.split('\n').slice(0, -1)
    if (whole.some((line, i) => done(line, i + 1))) return whole
  }
  throw new Error(`the child ended early: ${text} ${errors}`)
}

async function kill(target: ChildProcessWithoutNullStreams) {
  const ended = once(target, 'exit')
  target.kill('SIGKILL')
  await ended
}

async function idsIn(directory: string) {
  const engine = await openEmbedded(directory)
  const sql = postgres({ socket: engine.socket, host: 'x', user: 'postgres', max: 1 } as object)
  const rows = await sql<{ id: string }[]>`select id from kept`
  await sql.end()
  await engine.close()
  return new Set(rows.map(({ id }) => id))
}

t.test('a directory has one user at a time', async (t) => {
  const directory = path.join(await temporaryFolder(t), 'new', 'data')
  const message =
    `data directory ${directory} is held by another process: ` +
    'stop that process, or set GATEHOUSE_DATA_DIR or DATABASE_URL'
  const lock = lockDirectory(directory)
  t.equal(fs.statSync(directory).mode & 0o777, 0o700)
  t.throws(() => lockDirectory(directory), new EmbeddedLockedError(message))
  await t.rejects(openEmbedded(directory), new EmbeddedLockedError(message))
  const other = `
    import { openEmbedded } from '${open}'
    await openEmbedded(process.argv[1]).catch((error) => console.log(String(error)))`
  const args = ['--input-type=module', '--eval', other, directory]
  const { stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  t.equal(stdout, `EmbeddedLockedError: ${message}\n`)
  lock[Symbol.dispose]()
  lockDirectory(directory)[Symbol.dispose]()
})

t.test('a directory that cannot be used says so in one line', async (t) => {
  const folder = await temporaryFolder(t)
  fs.writeFileSync(path.join(folder, 'file'), '')
  const directory = path.join(folder, 'file', 'data')
  t.throws(() => lockDirectory(directory), {
    name: 'Error',
    message: /^cannot use the data directory \/[^\n]+\/file\/data: ENOTDIR[^\n]+$/,
  })
})

t.test('a disk that fails ends the engine and acknowledges nothing', async (t) => {
  const { GATEHOUSE_DATA_DIR: directory = '' } = await embedded.emptyEnv(t)
  const dir = await temporaryFolder(t)
  const fault = path.join(dir, 'fault')
  const failing = `
import fs from 'node:fs'
const real = fs.fdatasyncSync
fs.fdatasyncSync = (fd) => {
  if (fs.existsSync(process.env.MARK)) throw new Error('EIO')
  real(fd)
}`
  const code = `${prelude}
fs.writeFileSync(process.env.MARK, '')
sql\`insert into kept values ('lost')\`.then(() => say('acknowledged'), (e) => say(e.message))
say((await engine.failed).message)
await engine.close()
say('closed')
process.exit()`
  const doomed = child(code, directory, { mark: fault, preload: failing })
  const said = await lines(doomed, (line) => line === 'closed')
  t.match(said.join('\n'), /the embedded database has stopped: /)
  t.notMatch(said.join('\n'), /acknowledged/)
  fs.rmSync(fault)
  t.ok(await idsIn(directory), 'it recovers')
})

// Records each forced file, in every thread of the child.
const recordSyncs = `
  import fs from 'node:fs'
  import { syncBuiltinESMExports } from 'node:module'
  const note = (fd) => fs.appendFileSync(process.env.MARK, fs.readlinkSync('/proc/self/fd/' + fd) + '\\n')
  for (const name of ['fsyncSync', 'fdatasyncSync']) {
    const real = fs[name]
    fs[name] = (fd) => (note(fd), real(fd))
  }`

inLongRun(
  t,
  'a creation that was killed is begun anew, and forced to the disk',
  async (t: Test) => {
    const dir = await temporaryFolder(t)
    fs.writeFileSync(path.join(dir, 'syncs'), '')
    const directory = path.join(dir, 'data')
    const killed = child(prelude, directory)
    const unfinished = () =>
      fs
        .globSync('pg.new*', { cwd: directory })
        .find((name) => fs.existsSync(path.join(directory, name, 'base', '1')))
    const started = () => unfinished() !== undefined
    while (!started() && killed.exitCode === null) await new Promise(setImmediate)
    const creators = childrenOf(Number(killed.pid))
    t.equal(creators.length, 1, 'a process of its own creates')
    await kill(killed)
    while (creators.some(isRunning)) await setTimeout(10)
    t.same(fs.readdirSync(directory).toSorted(), ['lock', unfinished()])

    // Lists the cluster at the moment of its renaming, between the notes of what was forced.
    const recordRename = `${recordSyncs}
    const rename = fs.renameSync
    fs.renameSync = (from, to) => {
      if (!/\\/pg\\.new[^/]*$/.test(from)) return rename(from, to)
      const all = fs.readdirSync(from, { recursive: true }).map((name) => from + '/' + name)
      fs.appendFileSync(process.env.MARK, ['', from, ...all, ''].map((name) => 'rename ' + name + '\\n').join(''))
      rename(from, to)
    }
    syncBuiltinESMExports()`
    const code = `${prelude}
    fs.appendFileSync(process.env.MARK, 'ready\\n')
    for (let i = 0; i < 20; i++) await sql\`insert into kept values (\${i})\`
    await sql\`checkpoint\`
    await sql.end()
    await engine.close()`
    const mark = path.join(dir, 'syncs')
    const creator = child(code, directory, { mark, preload: recordRename })
    const [exit] = await once(creator, 'exit')
    t.equal(exit, 0)
    t.same(fs.readdirSync(directory).toSorted(), ['lock', 'pg'])

    const events = fs.readFileSync(mark, 'utf8').split('\n')
    const before = new Set(events.slice(0, events.indexOf('rename ')))
    const after = events.slice(events.lastIndexOf('rename '), events.indexOf('ready'))
    const cluster = events
      .filter((event) => event.startsWith('rename /'))
      .map((event) => event.slice(7))
    t.ok(cluster.length > 300, `${cluster.length} files and directories`)
    t.same(
      cluster.filter((file) => !before.has(file)),
      [],
    )
    t.ok(after.includes(directory) && after.includes(dir), 'the new names too')
    const used = events.slice(events.indexOf('ready'))
    t.ok(used.filter((file) => file.includes('/pg_wal/')).length >= 20, 'each commit')
    t.ok(
      used.some((file) => file.includes('/pg/base/')),
      'the checkpoint',
    )
  },
)
