import { stat } from 'node:fs/promises'
import { hidesProcesses, isHardened } from './processes/proc.ts'

/** How programs say that something is out of reach which `deploy/gatehouse.service` takes from them. */
const SIGNS: readonly (readonly [RegExp, string])[] = [
  [/^Failed to connect to .*bus.*: Permission denied/m, 'the system bus is out of reach'],
  [/: Transport endpoint is not connected$/m, 'the system bus talks to lasting users only'],
  [/^No journal files were opened due to insufficient permissions/m, 'the journal is out of reach'],
  [/: (Interactive authentication required|Access denied)\b/, 'polkit has to allow it'],
  [/"no new privileges" flag is set/, 'sudo is out of reach'],
  [/^bwrap: .*(permission|not permitted)/im, 'namespaces are out of reach'],
]
const HOME = /^\/(home|root|run\/user)(?=\/|$)/

/**
 * Says, where the hardening of the unit is why a program failed, that it is and what gives it back;
 * undefined where something else is wrong, or nobody has hardened this process.
 */
export function hardeningNote(said: string): string | undefined {
  const [, what] = SIGNS.find(([sign]) => sign.test(said)) ?? []
  return what !== undefined && isHardened() ? withRemedy(what) : undefined
}

/** What a program said, and the note when there is one, on lines of their own. */
export function withNote(said: string): string {
  return [said, hardeningNote(said)].filter((line) => line).join('\n')
}

/** Why processes of others can't be seen; undefined when they can. */
export function processNote(): string | undefined {
  if (!hidesProcesses()) return undefined
  const what = 'processes of other users are hidden'
  return isHardened() ? withRemedy(what) : what
}

/** Why a path can't be looked at: `ProtectHome` puts an empty folder without rights in a home's place. */
export async function homeNote(path: string): Promise<string | undefined> {
  const [home] = HOME.exec(path) ?? []
  if (home === undefined || !isHardened()) return undefined
  const found = await stat(home).catch(() => undefined)
  return found !== undefined && (found.mode & 0o777) === 0
    ? withRemedy(`${home} is hidden`)
    : undefined
}

function withRemedy(what: string): string {
  return `${what}: the hardening of gatehouse.service is in the way, deploy/ops-host-access.conf gives it back`
}
