import type { Provider } from '../../../../db/hooks/receive/providers.ts'
import { presetNamed, schemeOf } from './schemes.ts'
import { TOKEN_HEADERS } from './secrets.ts'

// Why deliveries were rejected, in words for operators. A reason is what the log of rejections keeps.

/** What an operator may do about a kind of rejection. */
type Remedy = 'rotate' | 'enable' | 'set secret' | 'add' | 'none'

export interface Explanation {
  /** The probable cause, and where to look. */
  cause: string
  remedy: Remedy
}

type Known = Pick<Provider, 'trust_mode' | 'scheme' | 'scheme_row'>

/** What a provider's deliveries must have; `undefined` for a path without a provider. */
export function expectedOf(provider: Known | undefined): string {
  if (provider === undefined) return 'The path of a provider, as the providers page shows it.'
  const scheme = schemeOf(provider)
  const title = presetNamed(provider.scheme)?.title
  if (scheme !== undefined) {
    const as = title === undefined ? '' : `, as ${title} signs`
    if (scheme.fetched !== undefined) {
      return `A signature by the sender's own key in ${placesText(scheme.signature)}${as}.`
    }
    return `A signature by the provider's secret in ${placesText(scheme.signature)}${as}.`
  }
  if (provider.trust_mode === 'open') return 'Any delivery, while the provider is enabled.'
  const sender = presetNamed(provider.scheme)?.scheme
  const own = sender !== undefined && 'token' in sender ? sender.token : []
  const names = [...new Set([...own, ...TOKEN_HEADERS])]
  return (
    "The provider's token: in Authorization: Bearer TOKEN (Token, Basic or alone), in " +
    `${placesText(names)}, in ?token=TOKEN, or at the end of the path.`
  )
}

function placesText(names: readonly string[]): string {
  const places = names.map((name) => {
    return name.startsWith('json:') ? `the member ${name.slice(5)}` : `the header ${name}`
  })
  return places.join(' or ')
}

/** The first that fits explains a reason. */
const CAUSES: readonly (readonly [RegExp, string, Remedy])[] = [
  [
    /^unknown path/,
    'The address at the sender is mistyped, or its provider was removed or never added.',
    'add',
  ],
  [/^no secret is configured/, 'The secret of this provider is not set here.', 'set secret'],
  [/^disabled/, 'The provider is disabled. Its deliveries are not kept meanwhile.', 'enable'],
  [
    /the headers are those of/,
    'Another sender posts here: its address belongs to another provider, or the provider has the ' +
      'scheme of another sender.',
    'none',
  ],
  [
    /^token missing/,
    'No token is set at the sender, or a proxy in between removes the header.',
    'rotate',
  ],
  [
    /missing/,
    'No secret is set at the sender, so that it does not sign; or a proxy in between removes the ' +
      'header.',
    'rotate',
  ],
  [
    /^matches a retired/,
    'The secret was rotated here, and the sender still has the previous one.',
    'rotate',
  ],
  [
    /newline of the body/,
    'The sender, or a proxy in between, adds or removes a line break at the end of the body.',
    'none',
  ],
  [
    /^would match without/,
    'White space was copied together with the secret. Copy it again without.',
    'rotate',
  ],
  [
    /^wrong token/,
    'The sender has another token: that of another provider, or one that was cut when it was copied.',
    'rotate',
  ],
  [
    /^wrong secret/,
    'The sender has another secret, or a proxy in between changes the body.',
    'rotate',
  ],
  [/^altered body/, 'A proxy in between changes the body after it was signed.', 'none'],
  [
    /^certificate of another address/,
    'The certificate is not at an address of this sender: somebody else posts here, or the ' +
      'provider is for another environment of the sender.',
    'none',
  ],
  [
    /^topic not named/,
    "The topic is not one of the provider's. Confirm its subscription on the page of its event.",
    'none',
  ],
  [
    /^token /,
    'The token is not as the provider expects it: another issuer, audience, subject or key, or it ' +
      'is too old.',
    'none',
  ],
  [/^the sender's key/, 'The sender signs by a key that it no longer uses.', 'none'],
  [/^stale by/, 'An old delivery came again, or the clock of the sender is slow.', 'none'],
  [
    /ahead of the window/,
    'The clock of the sender is fast, or that of this machine slow.',
    'none',
  ],
  [/^body too large/, 'The body is larger than HOOKS_MAX_BODY.', 'none'],
  [/^body over/, 'The signatures of this scheme are checked for smaller bodies only.', 'none'],
  [/^a loop/, 'A destination leads back to this installation.', 'none'],
  [
    /malformed/,
    'The header does not have the form of this scheme: another sender posts here, or the scheme ' +
      'is not that of the sender.',
    'none',
  ],
]

/** The probable cause of a reason. */
export function explain(reason: string): Explanation {
  const [, cause, remedy] = CAUSES.find(([form]) => form.test(reason)) ?? UNKNOWN
  return { cause, remedy }
}

const UNKNOWN = [/^/, 'The log of the sender may tell more.', 'none'] as const

/** The name of a generic provider that an unknown path asks for; undefined for other paths. */
export function missingProvider(reason: string): string | undefined {
  return /^unknown path: \S+ \/webhooks\/generic\/([a-z0-9][a-z0-9_-]{0,63})$/.exec(reason)?.[1]
}
