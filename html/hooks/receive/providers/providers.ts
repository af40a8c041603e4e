import { html, type Html } from '../../../../kernel/html.ts'
import type { Page } from '../../../../kernel/http/view.ts'
import type { MadeProvider } from '../../../../services/hooks/receive/providers/providers.ts'
import type { SenderInfo } from '../../../../services/hooks/receive/schemes/describe.ts'
import type { Scheme } from '../../../../services/hooks/receive/schemes/scheme.ts'
import { rowFilter } from '../../../form.ts'
import { copyBox, countLine, countText, secretBox } from '../../../parts.ts'
import { isUnused, providerCard } from './card.ts'
import type { ProviderCard } from './shown.ts'
import { senderFacts } from '../schemes.ts'

/** A provider that was just created, or got a new secret. */
export interface Made extends MadeProvider {
  url: string
  /** `disabled`: created, and to be switched on; `verified`: an open one that checks from now on. */
  state: 'rotated' | 'enabled' | 'disabled' | 'verified'
  /** How it signs; undefined where it does not, or only its sender can. */
  signing?: Scheme | undefined
  /** What is to be done there; undefined for a sender of any kind. */
  sender?: SenderInfo | undefined
}

/** What `/providers` shows. */
export interface ProvidersView {
  cards: readonly ProviderCard[]
  /** A token or secret is shown this one time. */
  made?: Made
}

/** `/providers`: who may send. */
export function providersPage(view: ProvidersView): Page {
  return {
    title: 'Providers',
    section: 'providers',
    body: html`<div class="title-line">
        <h1>Providers</h1>
        <a class="button primary" href="/providers/new">New provider</a>
      </div>
      ${providersFragment(view)}`,
  }
}

/** The page's content, and the answer to its forms: a new secret, the providers. */
export function providersFragment({ made, cards: all }: ProvidersView): Html {
  const rows = [...all.filter((one) => !isUnused(one)), ...all.filter(isUnused)]
  return html`<div id="providers">
    ${made && madeBox(made)} ${countLine(countText(all.length, 'provider'))}
    ${rowFilter('Find a provider', 'provider-rows', all.length)}
    <div id="provider-rows" class="openables">${rows.map(providerCard)}</div>
  </div>`
}

const DONE: Readonly<Record<Made['state'], string>> = {
  rotated: 'has its new secret',
  enabled: 'was created',
  disabled: 'was created',
  verified: 'verifies what it receives',
}

/** Shown this one time. */
export function madeBox(made: Made): Html {
  const { name, token, state } = made
  const title = token === null ? `${name} ${DONE[state]}` : `Secret of ${name}`
  const { signing } = made
  const isSigned = made.trust_mode === 'signed'
  const what = isSigned ? 'secret' : 'token'
  const command = signing === undefined ? curl(made) : signedCurl(made, signing)
  const isOurs = !isSigned || signing !== undefined
  const row = `/providers?open=${encodeURIComponent(name)}`
  return secretBox(
    title,
    { what, secret: token, id: 'made-token' },
    html`<p>
        Send to this URL.
        ${
          state === 'disabled' &&
          html`The provider is disabled until you <a href="${row}">switch it on</a>.`
        }
      </p>
      ${made.sender && html`${copyBox('made-url', 'URL', made.url)} ${senderFacts(made.sender)}`}
      ${isOurs && copyBox('made-curl', 'curl command', command)}`,
  )
}

function curl({ url, token, methods }: Made): string {
  const bearer = token === null ? '' : `  -H 'Authorization: Bearer ${token}' \\\n`
  return (
    `curl -X ${methodOf(methods)} '${url}' \\\n${bearer}` +
    `  -H 'Content-Type: application/json' \\\n  -d '{"hello": "world"}'`
  )
}

/** A method that the provider takes. */
function methodOf(methods: Made['methods']): string {
  const others = methods?.includes('POST') === false ? methods : []
  return others[0] ?? 'POST'
}

const DIGITS: Readonly<Record<Scheme['encoding'], string>> = {
  hex: `od -An -v -tx1 | tr -d ' \\n'`,
  base64: 'openssl base64 -A',
  base64url: `openssl base64 -A | tr '+/' '-_' | tr -d =`,
}

/** Signs in a shell what a sender's library signs. */
function signedCurl({ url, token, methods }: Made, scheme: Scheme): string {
  const { algorithm, encoding, list, prefix, signed } = scheme
  const text = shellText(signed)
  const key = KEYS[scheme.secret ?? 'text'] ?? ''
  const value = `${list?.time === undefined ? '' : `${list.time}$TIME${list.separator}`}${prefix}`
  const headers = [
    ...(signed.includes('{id}') ? [`${scheme.id.headers[0]}: $ID`] : []),
    ...scheme.timestamp.slice(0, 1).map((name) => `${name}: $TIME`),
    `${scheme.signature[0]}: ${value}$SIGNATURE`,
  ]
  const isTimed = /\$\{?TIME/.test([text, ...headers].join('\n'))
  return [
    `SECRET='${token ?? (scheme.secret === 'whsec' ? 'whsec_…' : '…')}'`,
    `BODY='{"hello": "world"}'`,
    ...(signed.includes('{id}') ? ['ID=msg_$(openssl rand -hex 12)'] : []),
    ...(isTimed ? [`TIME=$(${CLOCKS[scheme.clock ?? 'seconds']})`] : []),
    ...(scheme.secret === 'whsec' ? [KEY] : []),
    `SIGNATURE=$(printf %s "${text}" | openssl dgst -${algorithm} ${key} -binary \\`,
    `  | ${DIGITS[encoding]})`,
    `curl -X ${methodOf(methods)} '${url}' \\`,
    ...headers.map((header) => `  -H "${header}" \\`),
    `  -H 'Content-Type: application/json' --data-raw "$BODY"`,
  ].join('\n')
}

/** Of the schemes by which a shell can sign. */
const KEYS: Readonly<Record<string, string>> = {
  text: '-hmac "$SECRET"',
  whsec: '-mac HMAC -macopt hexkey:$KEY',
  hex: '-mac HMAC -macopt hexkey:$SECRET',
}

const CLOCKS = {
  seconds: 'date +%s',
  milliseconds: 'date +%s%3N',
  'RFC 3339': 'date -u +%Y-%m-%dT%H:%M:%SZ',
}

const DECODED = 'printf %s "${SECRET#whsec_}" | openssl base64 -d -A'
const KEY = `KEY=$(${DECODED} | od -An -v -tx1 | tr -d ' \\n')`

/** A signed text with the variables of a shell; the rest of it has no sign that a shell obeys. */
function shellText(signed: string): string {
  return signed
    .replace('{id}', '${ID}')
    .replace('{timestamp}', '${TIME}')
    .replace('{body}', '${BODY}')
}
