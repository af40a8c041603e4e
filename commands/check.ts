import type { Database } from '../db/client.ts'
import { listSenders } from '../db/hooks/providers.ts'
import type { Sender } from '../db/hooks/rows.ts'
import { migrationState } from '../db/migrate.ts'
import { messageOf } from '../kernel/log.ts'
import { acceptsPrevious, openSecret, readKeys } from '../services/hooks/sender-keys.ts'
import type { SigningSecrets } from '../services/hooks/signing-secrets.ts'
import { DONE, FAILED, UsageError, type Output } from './command.ts'

/** One thing that was looked at: fine, or what to do about it. */
export interface Finding {
  readonly ok: boolean
  readonly what: string
  readonly detail: string
}

/** Reads the arguments of `check`: whether to print JSON. */
export function parseCheck(args: readonly string[]): { readonly json: boolean } {
  if (args.some((arg) => arg !== '--json'))
    throw new UsageError('"check" takes no argument but --json')
  return { json: args.length > 0 }
}

/**
 * Looks at a database without changing it: does it answer, do its migrations fit this program, and can
 * the secrets in it be read with the present key?
 */
export async function checkDatabase(
  db: Database,
  what: string,
  secrets: SigningSecrets,
): Promise<readonly Finding[]> {
  try {
    await db.ping()
    const answers = { ok: true, what: 'database', detail: what }
    return [answers, ...(await checkContent(db, secrets))]
  } catch (error) {
    return [{ ok: false, what: 'database', detail: `${what}: ${messageOf(error)}` }]
  }
}

/** Prints findings, one line each; the exit code is 1 when one of them is not fine. */
export function reportFindings(
  findings: readonly Finding[],
  json: boolean,
  output: Output,
): number {
  if (json) output.out(JSON.stringify(findings))
  else
    for (const { ok, what, detail } of findings)
      output.out(`${ok ? 'ok  ' : 'FAIL'}  ${what}: ${detail}`)
  return findings.every(({ ok }) => ok) ? DONE : FAILED
}

async function checkContent(db: Database, secrets: SigningSecrets): Promise<readonly Finding[]> {
  const { applied, pending, faults } = await migrationState(db)
  const migrations = migrationFindings(applied.length, pending.length, faults)
  // The queries are those of this program's schema: on another one they would only fail.
  if (pending.length > 0 || faults.length > 0) return migrations
  return [...migrations, ...secretFindings(await listSenders(db), secrets, new Date())]
}

function migrationFindings(
  applied: number,
  pending: number,
  faults: readonly string[],
): readonly Finding[] {
  const waiting = pending === 0 ? '' : `, ${pending} to be applied by serve or migrate`
  if (faults.length === 0)
    return [{ ok: true, what: 'migrations', detail: `${applied} applied${waiting}` }]
  return faults.map((detail) => ({ ok: false, what: 'migrations', detail }))
}

/** Each secret that can't be read, with what to do; one line for all when they can. */
function secretFindings(
  senders: readonly Sender[],
  secrets: SigningSecrets,
  at: Date,
): readonly Finding[] {
  const signing = senders.filter(({ signing_secret }) => signing_secret !== null)
  const bad = signing.flatMap((sender) => {
    const problem = problemOf(sender, secrets, at)
    return problem === undefined ? [] : [{ ok: false, what: sender.name, detail: problem }]
  })
  if (signing.length === 0 || bad.length > 0) return bad
  return [{ ok: true, what: 'signing secrets', detail: `${signing.length} can be read` }]
}

function problemOf(sender: Sender, secrets: SigningSecrets, at: Date): string | undefined {
  const { name, retired_signing_secret: retired } = sender
  const key = 'set GATEHOUSE_SECRET_KEY to the key that it was stored with'
  const present = readKeys(secrets, sender)
  if ('problem' in present) {
    const rotate = `gatehouse provider rotate ${name}`
    return `its signing secret can't be read (${present.problem}); ${key}, or make a new one: ${rotate}`
  }
  if (retired === null || !acceptsPrevious(sender, at)) return undefined
  const previous = openSecret(secrets, name, retired)
  if (!('problem' in previous)) return undefined
  return `its previous signing secret can't be read (${previous.problem}); ${key}, or have the sender use the new one`
}
