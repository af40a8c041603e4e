import type { Provider } from '../../db/hooks/providers.ts'
import { acceptsPrevious, type SigningSecrets } from '../../services/hooks/secrets.ts'
import { fine, wrong, type Finding } from './finding.ts'

/** Each secret that can't be read, with what to do; one line for all when they can. */
export function signingSecretFindings(
  providers: readonly Provider[],
  secrets: SigningSecrets,
  at: Date,
): readonly Finding[] {
  const signing = providers.filter(({ signing_secret }) => signing_secret !== null)
  const bad = signing.flatMap((provider) => {
    const problem = problemOf(provider, secrets, at)
    return problem === undefined ? [] : [wrong(provider.name, problem)]
  })
  if (signing.length === 0 || bad.length > 0) return bad
  return [fine('signing secrets', `${signing.length} can be read`)]
}

function problemOf(provider: Provider, secrets: SigningSecrets, at: Date): string | undefined {
  const { name, signing_secret, previous_signing_secret } = provider
  const key = 'set GATEHOUSE_SECRET_KEY to the key that it was stored with'
  const present = secrets.keyIn(signing_secret, name)
  if ('problem' in present) {
    const rotate = `gatehouse provider rotate ${name}`
    return `its signing secret can't be read (${present.problem}); ${key}, or make a new one: ${rotate}`
  }
  if (previous_signing_secret === null || !acceptsPrevious(provider, at)) return undefined
  const previous = secrets.keyIn(previous_signing_secret, name, 'previous')
  if (!('problem' in previous)) return undefined
  return `its previous signing secret can't be read (${previous.problem}); ${key}, or have the sender use the new one`
}
