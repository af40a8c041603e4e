import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { calls, inTier, says, startModel } from '../helpers/model-endpoint.ts'
import type { Call } from '../helpers/model-endpoint.ts'
import { ended, inventoryFile, startOpsProcess, trigger } from '../helpers/ops-setup.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import type { Owner } from '../helpers/owner.ts'
import { openDescriptors } from '../helpers/process-figures.ts'

const [, postgres] = backends
const path = process.env['PATH'] ?? ''
const real = path.split(delimiter).some((folder) => existsSync(join(folder, 'bwrap')))

/** Calls tools of tier 2 in one turn, on a server whose path begins with a folder of programs. */
async function use(
  t: Owner,
  programs: Readonly<Record<string, string>>,
  list: readonly Call[],
  /** Programs that may not be run; there are no others then, not even those of this machine. */
  forbidden: readonly string[] = [],
): Promise<{
  readonly answers: readonly string[]
  readonly folder: string
  readonly logs: readonly string[]
  /** How many more descriptors the server had after the calls than before. */
  readonly opened: number
}> {
  const folder = await temporaryFolder(t, 'programs')
  for (const [name, text] of Object.entries(programs)) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${text}\n`)
    chmodSync(join(folder, name), forbidden.includes(name) ? 0o644 : 0o755)
  }
  let answers: readonly string[] = []
  let pid = 0
  let opened = 0
  const model = await startModel(
    t,
    inTier(2, ({ step, results }) => {
      opened = openDescriptors(pid) - opened
      if (step === 0) return calls(...list)
      answers = results
      return says('Done.')
    }),
  )
  const ops = await startOpsProcess(t, postgres, {
    ...model.env,
    PATH: forbidden.length > 0 ? folder : `${folder}${delimiter}${path}`,
    OPS_INVENTORY: await inventoryFile(t, {
      services: [],
      readonly: [['env'], ['touch'], ['big'], ['leaves']],
    }),
  })
  await ended(ops)
  pid = ops.server.pid
  await trigger(ops)
  const session = await ended(ops)
  if (session.status !== 'completed') throw new Error(`the session ended as ${session.status}`)
  await ops.server.stop()
  return { answers, folder, logs: ops.server.logs(), opened }
}

t.test('the journal is asked for what was meant, and commands get nothing secret', async (t) => {
  const journalctl = 'echo "$@"'
  // A sandbox that is installed and not allowed is as good as none.
  const big = "head -c 50000 /dev/zero | tr '\\0' x"
  const leaves = 'setsid sleep 300 &\necho left'
  const { answers } = await use(t, { journalctl, big, leaves, bwrap: 'exit 1' }, [
    ['journal', { unit: 'shop@1.service', lines: 5, minutes: 10, errors_only: true }],
    ['journal', {}],
    ['run_readonly', { argv: ['env'] }],
    ...Array.from({ length: 10 }, (): Call => ['run_readonly', { argv: ['big'] }]),
    ['run_readonly', { argv: ['leaves'] }],
  ])
  const usual = '--no-pager --quiet --output=short-iso'
  t.same(answers.slice(0, 2), [
    `${usual} --lines=5 --unit=shop@1.service --since=-10min --priority=err`,
    `${usual} --lines=100`,
  ])
  t.match(answers[2], /^STARTED_BY_GATEHOUSE=[0-9a-f-]{36}$/m, 'the mark by which it is found')
  const whole = answers.slice(3, 13).filter((text) => /x{16000}\n\(34000 char/.test(text))
  t.equal(whole.length, 10, 'all that a command has said is read')
  t.equal(answers[13], 'left', 'what it leaves behind holds nothing up')
  t.notMatch(answers[2], /OPS_MODEL|DATABASE_URL|GATEHOUSE_/)
})

t.test('what a command leaves behind keeps no descriptor of ours', async (t) => {
  const leaves = 'setsid sleep 300 &\nsleep 0.2\necho left'
  const list = Array.from({ length: 8 }, (): Call => ['run_readonly', { argv: ['leaves'] }])
  const { answers, opened } = await use(t, { leaves, bwrap: 'exit 1' }, list)
  t.same(new Set(answers), new Set(['left']))
  t.ok(opened < list.length, `${opened} descriptors more, two pipes for each command`)
})

t.test('commands run in bwrap where it works', async (t) => {
  const bwrap = 'echo "$@" >> "$0.log"\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"'
  const journalctl = 'echo a line of the journal'
  const { answers, folder } = await use(t, { bwrap, journalctl }, [
    ['journal', {}],
    ['run_readonly', { argv: ['touch', '/nowhere/at all'] }],
  ])
  t.equal(answers[0], 'a line of the journal')
  t.match(answers[1], /^Error: It ended with 1/)
  const ran = readFileSync(join(folder, 'bwrap.log'), 'utf8').trim().split('\n')
  t.match(ran, [/ -- true$/, / -- journalctl --no-pager/, / -- touch \/nowhere\/at all$/])
  for (const line of ran) t.match(line, /^--ro-bind \/ \/ .*--die-with-parent -- /)
})

t.test('a bwrap that may not be run is said, and one that is not there is none', async (t) => {
  const journalctl = 'echo a line of the journal'
  const list: readonly Call[] = [['journal', {}]]
  const there = await use(t, { bwrap: 'exit 1', journalctl }, list, ['bwrap'])
  t.same(there.answers, ['a line of the journal'])
  t.match(
    there.logs.filter((line) => line.includes('sandbox')),
    [/no sandbox for commands.*it could not be started: spawn bwrap EACCES/],
  )
  const { answers, logs } = await use(t, { journalctl }, list, ['bwrap'])
  t.same(answers, ['a line of the journal'])
  t.notOk(logs.some((line) => line.includes('sandbox')))
})

t.test('a command does not run while it is not known whether it can be sandboxed', async (t) => {
  // Too slow the first time, as on a machine that has no time for it.
  const slow = '[ -e "$0.tried" ] || { : > "$0.tried"; exec sleep 60; }'
  const bwrap = `${slow}\necho "$@" >> "$0.log"\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"`
  const journalctl = 'echo a line of the journal'
  const { answers, folder, logs } = await use(t, { bwrap, journalctl }, [
    ['journal', { lines: 1 }],
    ['journal', { lines: 2 }],
  ])
  t.match(answers[0], /^Error: it was not run, .* sandboxed is not known yet: it took over 5 s$/)
  t.equal(answers[1], 'a line of the journal', 'the next call tries again')
  const ran = readFileSync(join(folder, 'bwrap.log'), 'utf8').trim().split('\n')
  t.match(ran, [/ -- true$/, / -- journalctl .* --lines=2$/], 'and runs in the sandbox')
  const said = logs.filter((line) => line.includes('sandbox'))
  t.match(said, [/sandbox not tried/])
})

t.test(
  'nothing can be written from within bwrap',
  { skip: !real && 'no bwrap here' },
  async (t) => {
    const file = join(await temporaryFolder(t, 'outside'), 'written')
    const { answers } = await use(t, {}, [['run_readonly', { argv: ['touch', file] }]])
    t.match(answers[0], /^Error: It ended with 1\ntouch: /)
    t.notOk(existsSync(file))
  },
)
