import { createSecretBox, DAMAGED, type SecretBox } from '../../../../kernel/secret-box.ts'
import type { RandomBytes } from '../../../../kernel/tokens.ts'
import { keyOf } from './keys.ts'
import { SIGNED_PROVIDERS, type SignedProvider } from './provider-names.ts'
import type { ProviderSecrets, SigningSecrets, StoredKey } from './signing-secrets.ts'

type SecretVariable = `HOOKS_${Uppercase<SignedProvider>}_SECRET`

/** The variable of a provider's secret; with `_PREVIOUS` that of its previous secret. */
export function secretVariable(provider: SignedProvider) {
  return `HOOKS_${provider.toUpperCase() as Uppercase<SignedProvider>}_SECRET` as const
}

/** The part of the configuration that holds secrets. */
interface SecretSource {
  current: {
    [V in SecretVariable | `${SecretVariable}_PREVIOUS`]?: string | undefined
  } & { GATEHOUSE_SECRET_KEY?: Buffer | undefined }
}

/** How many replaced secrets are remembered to explain mismatches. */
const MAX_RETIRED = 3

/**
 * Follows the configuration, so that a re-read environment file counts at once. A secret that was
 * replaced while the process runs is remembered as retired.
 */
export function configuredSecrets(config: SecretSource, random: RandomBytes): SigningSecrets {
  const known = new Map<SignedProvider, ProviderSecrets>()
  let boxKey: Buffer | undefined
  let box: SecretBox | undefined

  function of(provider: SignedProvider): ProviderSecrets | undefined {
    const variable = secretVariable(provider)
    const { [variable]: current, [`${variable}_PREVIOUS` as const]: previous } = config.current
    const before = known.get(provider)
    if (current === undefined) return undefined
    const [knownCurrent, knownPrevious] = before?.accepted ?? []
    if (before !== undefined && knownCurrent === current && knownPrevious === previous)
      return before
    const accepted = previous === undefined ? [current] : [current, previous]
    const old = before === undefined ? [] : [...before.accepted, ...before.retired]
    const retired = old.filter((secret) => !accepted.includes(secret)).slice(0, MAX_RETIRED)
    const secrets = { accepted, retired, since: new Date() }
    known.set(provider, secrets)
    return secrets
  }

  function presentBox(): SecretBox | undefined {
    const key = config.current.GATEHOUSE_SECRET_KEY
    if (key !== boxKey) {
      boxKey = key
      box = key === undefined ? undefined : createSecretBox(key, random)
    }
    return box
  }

  // Read once now: a secret that is replaced before its first use is remembered as well.
  for (const provider of SIGNED_PROVIDERS) of(provider)
  return { of, box: presentBox, keyIn: rememberKeys(presentBox) }
}

/**
 * Decrypts a stored secret once: a row that is read again has the same bytes until the secret
 * changes.
 */
function rememberKeys(boxOf: () => SecretBox | undefined): SigningSecrets['keyIn'] {
  const known = new Map<string, { sealed: Buffer; box: SecretBox; found: StoredKey }>()

  return ({ name, scheme, signing_secret, previous_signing_secret = null }, which = 'current') => {
    const sealed = which === 'current' ? signing_secret : previous_signing_secret
    if (sealed === null) return { problem: 'there is no secret' }
    const box = boxOf()
    if (box === undefined) return { problem: 'GATEHOUSE_SECRET_KEY is not set' }
    const place = `${which} ${name}`
    const before = known.get(place)
    if (before?.box === box && before.sealed.equals(sealed)) return before.found
    const secret = box.open(sealed, name)
    const key = 'text' in secret ? keyOf(scheme, secret.text) : undefined
    const { problem } = 'problem' in secret ? secret : DAMAGED
    const found = key === undefined ? { problem } : { key }
    known.set(place, { sealed, box, found })
    return found
  }
}
