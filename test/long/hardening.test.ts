import { chmodSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { t } from 'tap'
import { postgres } from '../helpers/backends.ts'
import { calls, inTier, says, startModel } from '../helpers/model.ts'
import { ended, inventoryFile, opsServer, trigger } from '../helpers/ops.ts'
import { temporaryFolder, type Owner } from '../helpers/owner.ts'
import { startServerProcess } from '../helpers/server-process.ts'

const path = process.env['PATH'] ?? ''
const root = process.getuid?.() === 0 ? false : 'only root can mount'

/** Word for word what these programs of Debian 12 say within the unit. */
const REFUSALS = {
  systemctl: ['Failed to connect to bus: Permission denied', 1],
  journalctl: ['No journal files were opened due to insufficient permissions.', 1],
  bwrap: [
    'bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces. See <https://deb.li/bubblewrap> or <file:///usr/share/doc/bubblewrap/README.Debian.gz>.',
    1,
  ],
} as const
/** The same with the drop-in, without what it says of the lasting user and of polkit. */
const HALF = {
  systemctl: ['Failed to retrieve unit state: Transport endpoint is not connected', 1],
  restart: ['Failed to restart web.service: Interactive authentication required.', 1],
} as const
/** Where nothing is hardened: no systemd, and a program that fails for a reason of its own. */
const OTHERS = {
  systemctl: ["System has not been booted with systemd as init system (PID 1). Can't operate.", 1],
  journalctl: ['Failed to parse timestamp: -0min', 1],
} as const
const NOTE =
  'the hardening of gatehouse.service is in the way, deploy/ops-host-access.conf gives it back'

type Programs = Record<string, readonly [says: string, code: number]>

/** A program as systemd starts a service with `NoNewPrivileges=yes`. */
const HARDENED = ['setpriv', '--no-new-privs', process.execPath, 'server.ts']
/** The same, and with `ProtectHome=yes` and `ProtectProc=invisible`. */
const HIDDEN = [
  'unshare',
  '--mount',
  '--propagation',
  'private',
  'sh',
  '-c',
  'mount -t proc -o hidepid=2,gid=65534 proc /proc && mount -t tmpfs -o mode=000 none /home && exec "$@"',
  'sh',
  'setpriv',
  '--bounding-set=-all',
  ...HARDENED.slice(1),
]

/** Runs every check of a service, reads the journal, looks, and restarts, with programs that answer so. */
async function use(
  t: Owner,
  programs: Programs,
  program: readonly string[],
  invocation: Record<string, string> = {
    INVOCATION_ID: 'b1946ac92492d2347c6235b4d2611184',
  },
) {
  const folder = await temporaryFolder(t, 'programs')
  for (const [name, [text, code]] of Object.entries(programs)) {
    writeFileSync(join(folder, name), `#!/bin/sh\necho "${text}" >&2\nexit ${code}\n`)
    chmodSync(join(folder, name), 0o755)
  }
  const web = {
    name: 'web',
    checks: [
      { type: 'unit', name: 'one', unit: 'web.service' },
      { type: 'unit', name: 'all' },
      { type: 'command', name: 'asked', argv: ['systemctl', 'is-active', 'web.service'] },
      { type: 'process', name: 'first', match: 'no-such-process-anywhere' },
      { type: 'disk', name: 'homes', path: '/home', max_percent: 100 },
      { type: 'file_age', name: 'backup', path: '/home/backup', max_age_s: 60 },
    ],
    operations: [
      {
        name: 'restart',
        action_type: 'restart',
        argv: ['restart' in programs ? 'restart' : 'systemctl', 'restart', 'web.service'],
      },
    ],
  }
  let answers: readonly string[] = []
  const model = await startModel(
    t,
    inTier(3, ({ step, results }) => {
      if (step > 0) answers = results
      if (step > 0) return says('Done.')
      return calls(
        ['run_check', { service: 'web' }],
        ['journal', {}],
        ['run_operation', { service: 'web', operation: 'restart', reason: 'it hangs' }],
      )
    }),
  )
  const env = {
    ...(await postgres.env(t)),
    ...model.env,
    ...invocation,
    PATH: `${folder}${delimiter}${path}`,
    OPS_INVENTORY: await inventoryFile(t, { services: [web] }),
  }
  const server = await startServerProcess(t, { services: ['ops'], env, program })
  const ops = opsServer(server, env)
  await ended(ops)
  await trigger(ops)
  const session = await ended(ops)
  if (session.status !== 'completed') throw new Error(`the session ended as ${session.status}`)
  await server.stop()
  return { answers, logs: server.logs() }
}

t.test('what the hardening takes is refused with its reason and its remedy', async (t) => {
  const { answers, logs } = await use(t, REFUSALS, HARDENED)
  const [checks = '', journal, restart] = answers
  t.match(checks, `unknown one: not looked at: the system bus is out of reach: ${NOTE}`)
  t.match(checks, `unknown all: not looked at: the system bus is out of reach: ${NOTE}`)
  t.match(
    checks,
    `unknown asked: not looked at: ended with 1, expected 0: ${REFUSALS.systemctl[0]}: the system bus is out of reach: ${NOTE}`,
  )
  t.match(
    checks,
    'FAIL first: no process with "no-such-process-anywhere" runs',
    'these can be seen',
  )
  t.equal(
    journal,
    `Error: It ended with 1\n${REFUSALS.journalctl[0]}\nthe journal is out of reach: ${NOTE}`,
  )
  t.match(restart, `restart: ended with 1; the system bus is out of reach: ${NOTE}`)
  const warnings = logs.filter((line) => line.includes('no sandbox for commands'))
  t.equal(warnings.length, 1)
  t.match(warnings[0], `namespaces are out of reach: ${NOTE}`)
})

t.test('what else is needed for the system bus is named', async (t) => {
  const { answers } = await use(t, HALF, HARDENED)
  const [checks = '', , restart] = answers
  t.match(
    checks,
    `unknown one: not looked at: the system bus talks to lasting users only: ${NOTE}`,
  )
  t.match(restart, `restart: ended with 1; polkit has to allow it: ${NOTE}`)
})

t.test('nothing is blamed on a hardening that is not there', async (t) => {
  const cases: readonly (readonly [
    string,
    Programs,
    Record<string, string>,
    readonly string[],
  ])[] = [
    ['not by systemd', REFUSALS, {}, HARDENED],
    [
      'a unit without hardening',
      REFUSALS,
      { INVOCATION_ID: '1' },
      [process.execPath, 'server.ts'],
    ],
    ['another reason', OTHERS, { INVOCATION_ID: '1' }, HARDENED],
  ]
  for (const [name, programs, invocation, program] of cases) {
    const { answers, logs } = await use(t, programs, program, invocation)
    t.equal(answers.length, 3, name)
    t.notMatch(answers.join('\n'), /hardening/, name)
    t.notMatch(logs.join('\n'), /hardening/, name)
    t.match(answers[0], /^unknown one: not looked at: systemd can't be asked: /m, name)
    t.match(answers[0], /^unknown all: not looked at: systemd can't be asked: /m, name)
  }
})

t.test('what is hidden is not judged', { skip: root }, async (t) => {
  const { answers } = await use(t, REFUSALS, HIDDEN)
  const [checks = ''] = answers
  t.match(checks, `unknown first: not looked at: processes of other users are hidden: ${NOTE}`)
  t.match(checks, `unknown homes: not looked at: /home is hidden: ${NOTE}`)
  t.match(checks, `unknown backup: not looked at: /home is hidden: ${NOTE}`)
})
