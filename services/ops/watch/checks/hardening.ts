import { stat } from 'node:fs/promises'
import { environmentOf, readProc, seesProcesses } from '../../../../kernel/processes/proc.ts'

/**
 * Messages of programs that lack what `deploy/gatehouse.service` takes away, and what they mean.
 */
const SIGNS = [
  [
    /^Failed to connect to .{0,40}bus.{0,40}: Permission denied/m,
    'the system bus is out of reach',
  ],
  [/: Transport endpoint is not connected$/m, 'the system bus talks to lasting users only'],
  [/^No journal files were opened due to insufficient/m, 'the journal is out of reach'],
  [/: (Interactive authentication required|Access denied)\b/, 'polkit has to allow it'],
  [/"no new privileges" flag is set/, 'sudo is out of reach'],
  [/^bwrap: .*(permission|not permitted)/im, 'namespaces are out of reach'],
] as const
const HOME = /^\/(home|root|run\/user)(?=\/|$)/

/** Why a program failed and the remedy, if the hardening of the systemd unit is the cause. */
export function hardeningNote(output: string): string | undefined {
  const [, what] = SIGNS.find(([sign]) => sign.test(output)) ?? []
  return what !== undefined && isHardened() ? withRemedy(what) : undefined
}

/** The output of a program, followed by such a note. */
export function withNote(output: string): string {
  return [output, hardeningNote(output)].filter(Boolean).join('\n')
}

/** Why processes of other users are not visible, and the remedy; undefined if they are. */
export function processNote(): string | undefined {
  if (!seesProcesses()) return 'there is no /proc here; mount it'
  if (!hidesProcesses()) return undefined
  const what = 'processes of other users are hidden'
  return isHardened() ? withRemedy(what) : `${what}; mount /proc without hidepid`
}

/**
 * Why a path can't be read: `ProtectHome` replaces homes by an empty folder without permissions.
 */
export async function homeNote(path: string): Promise<string | undefined> {
  const [home] = HOME.exec(path) ?? []
  if (home === undefined || !isHardened()) return undefined
  const found = await stat(home).catch(() => undefined)
  if (found === undefined || (found.mode & 0o777) !== 0) return undefined
  return withRemedy(`${home} is hidden`)
}

function withRemedy(what: string): string {
  const remedy = 'deploy/ops-host-access.conf gives it back'
  return `${what}: the hardening of gatehouse.service is in the way, ${remedy}`
}

/** Whether a hardened systemd unit runs this process: one without new privileges. */
function isHardened(): boolean {
  const ofSystemd = environmentOf('self').some((one) => one.startsWith('INVOCATION_ID='))
  return ofSystemd && /^NoNewPrivs:\s*1$/m.test(readProc('/proc/self/status'))
}

/** Whether `/proc` shows only the processes of this user (`hidepid`, systemd's `ProtectProc`). */
function hidesProcesses(): boolean {
  return readProc('/proc/1/cmdline') === ''
}
