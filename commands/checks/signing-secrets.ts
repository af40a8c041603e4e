import type { Sender } from '../../db/hooks/rows.ts'
import {
  acceptsPrevious,
  openSecret,
  readKeys,
  type SigningSecrets,
} from '../../services/hooks/secrets.ts'
import { fine, wrong, type Finding } from './finding.ts'

/** Each secret that can't be read, with what to do; one line for all when they can. */
export function signingSecretFindings(
  senders: readonly Sender[],
  secrets: SigningSecrets,
  at: Date,
): readonly Finding[] {
  const signing = senders.filter(({ signing_secret }) => signing_secret !== null)
  const bad = signing.flatMap((sender) => {
    const problem = problemOf(sender, secrets, at)
    return problem === undefined ? [] : [wrong(sender.name, problem)]
  })
  if (signing.length === 0 || bad.length > 0) return bad
  return [fine('signing secrets', `${signing.length} can be read`)]
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
