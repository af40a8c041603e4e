import type { ConfigSource } from '../../kernel/config.ts'
import { createSecretBox, type SecretBox } from '../../kernel/secret-box.ts'

/** The senders whose deliveries are signed (hooks.md section 5). */
export const SIGNED_PROVIDERS = ['code_host', 'payments', 'chat'] as const
export type SignedProvider = (typeof SIGNED_PROVIDERS)[number]

export function isSignedProvider(name: string): name is SignedProvider {
  return name === 'code_host' || name === 'payments' || name === 'chat'
}

/** The variable that has a sender's secret; the one being retired is in the same with `_PREVIOUS`. */
export function secretVariable(provider: SignedProvider) {
  return `HOOKS_${provider.toUpperCase() as Uppercase<SignedProvider>}_SECRET` as const
}

/** Secrets of one sender: all of `accepted` verify; `retired` ones only explain a refusal. */
export interface ProviderSecrets {
  readonly accepted: readonly string[]
  readonly retired: readonly string[]
  /** When this process found the accepted ones configured: what was noted before is about others. */
  readonly since: Date
}

/** The secrets by which senders sign. */
export interface SigningSecrets {
  /** The present secrets of a configured sender; undefined for one that is not. */
  of(provider: SignedProvider): ProviderSecrets | undefined
  /** What the stored secrets of generic providers are sealed in, the same while its key is; undefined without one. */
  box(): SecretBox | undefined
}

/** How many replaced secrets are remembered to explain refusals. */
const REMEMBERED = 3

/**
 * Follows the configuration, so that a re-read environment file counts at once. A secret that was
 * replaced while the process runs is remembered as retired.
 */
export function configuredSecrets(
  config: ConfigSource,
  random: (size: number) => Buffer,
): SigningSecrets {
  const known = new Map<SignedProvider, ProviderSecrets>()
  let boxKey: Buffer | undefined
  let box: SecretBox | undefined
  const followed: SigningSecrets = {
    of(provider) {
      const variable = secretVariable(provider)
      const { [variable]: current, [`${variable}_PREVIOUS` as const]: previous } = config.current
      const before = known.get(provider)
      if (current === undefined) return undefined
      const accepted = previous === undefined ? [current] : [current, previous]
      if (before !== undefined && sameList(before.accepted, accepted)) return before
      const replaced = [...(before?.accepted ?? []), ...(before?.retired ?? [])]
      const retired = replaced.filter((secret) => !accepted.includes(secret)).slice(0, REMEMBERED)
      const secrets = { accepted, retired, since: new Date() }
      known.set(provider, secrets)
      return secrets
    },
    box() {
      const present = config.current.GATEHOUSE_SECRET_KEY
      if (present !== boxKey) {
        boxKey = present
        box = present === undefined ? undefined : createSecretBox(present, random)
      }
      return box
    },
  }
  // Read once now: a secret that is replaced before its first use is remembered as well.
  for (const provider of SIGNED_PROVIDERS) followed.of(provider)
  return followed
}

function sameList(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((value, i) => value === b[i])
}
