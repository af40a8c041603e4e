import { percentDecoded } from '../../kernel/text.ts'
import { readWebUrl } from '../../kernel/variables.ts'

/** The forms in which notices are sent. */
export const KINDS = [
  'json',
  'slack',
  'discord',
  'telegram',
  'ntfy',
  'pagerduty',
  'apprise',
  'mail',
] as const
export type Kind = (typeof KINDS)[number]

/** Where notices go, and in which form. The URL may hold a key. */
export interface Address {
  kind: Kind
  url: string
  /** A key that is kept beside the URL. */
  token?: string
}

/** How an address of a kind is written, and whether a URL is one of it. */
interface AddressForm {
  form: string
  fits: (url: URL, hasToken: boolean) => boolean
  /** The parameters that it may have; any where the receiver gets the URL as it stands. */
  takes?: readonly string[]
}

/** Parameters of Telegram's sendMessage that an address may have, and their form; none is required. */
const TELEGRAM_TYPES: readonly (readonly [name: string, type: RegExp])[] = [
  ['message_thread_id', /^(?:[1-9]\d{0,14})?$/],
  ['disable_notification', /^(?:true|false)?$/],
  ['protect_content', /^(?:true|false)?$/],
]
export const TELEGRAM_NAMES = TELEGRAM_TYPES.map(([name]) => name)
/** Members of the payload of an event that an address may have. */
export const PAGERDUTY_NAMES = ['component', 'group', 'class']

const FORMS: Readonly<Record<Kind, AddressForm>> = {
  json: { form: 'https://HOST/PATH for JSON', fits: () => true },
  slack: { form: 'slack+https://hooks.slack.com/services/PATH', fits: () => true },
  discord: { form: 'discord+https://discord.com/api/webhooks/ID/TOKEN', fits: () => true },
  telegram: {
    form: 'telegram+https://api.telegram.org/botTOKEN/sendMessage?chat_id=ID',
    fits: ({ pathname, searchParams }, hasToken) =>
      searchParams.has('chat_id') &&
      (hasToken ? pathname === '/sendMessage' : /^\/bot[^/]+\/sendMessage$/.test(pathname)) &&
      TELEGRAM_TYPES.every(([name, type]) => type.test(searchParams.get(name) ?? '')),
    takes: ['chat_id', ...TELEGRAM_NAMES],
  },
  ntfy: {
    form: 'ntfy+https://HOST/TOPIC',
    fits: ({ pathname }) => /^\/[^/]+$/.test(pathname),
  },
  pagerduty: {
    form: 'pagerduty+https://events.pagerduty.com/v2/enqueue?routing_key=KEY',
    fits: ({ searchParams }, hasToken) => hasToken || searchParams.has('routing_key'),
    takes: ['routing_key', ...PAGERDUTY_NAMES],
  },
  apprise: {
    form: 'apprise+https://HOST/notify/KEY, or apprise+https://HOST/notify/?urls=URLS',
    fits: ({ pathname, searchParams }) =>
      searchParams.has('urls')
        ? /\/notify\/?$/.test(pathname)
        : /\/notify\/[^/]+\/?$/.test(pathname),
    takes: ['urls', 'tag'],
  },
  mail: {
    form: 'smtp://USER:PASSWORD@HOST?from=ADDRESS&to=ADDRESS (or smtps://)',
    fits: ({ hostname, searchParams }) =>
      hostname !== '' &&
      ['from', 'to'].every((name) => MAILBOXES.test(searchParams.get(name) ?? '')) &&
      ['yes', 'no', null].includes(searchParams.get('tls')),
    takes: ['from', 'to', 'tls'],
  },
}

const MAILBOXES = /^[^\s@,<>]+@[^\s@,<>]+(?:,[^\s@,<>]+@[^\s@,<>]+)*$/

/** The accepted forms of an address, in words. */
export const ADDRESS_FORM = `an http:// or https:// URL for notices as JSON, or ${KINDS.filter(
  (kind) => kind !== 'json',
)
  .map((kind) => FORMS[kind].form)
  .join(', ')}`

/** Reads an address. Throws an error whose message quotes no part of it. */
export function readAddress(text: string, token?: string): Address {
  const [, prefix = '', scheme = ''] = /^(?:([a-z]+)\+)?([a-z]+):\/\//.exec(text) ?? []
  const isMail = /^smtps?$/.test(scheme) && prefix === ''
  const kind = isMail ? 'mail' : prefix === '' ? 'json' : prefix
  const known = KINDS.find((one) => one === kind && (one !== 'mail' || isMail))
  if (known === undefined) throw new SyntaxError('its scheme is not known')
  const plain = text.slice(prefix === '' ? 0 : prefix.length + 1)
  const url = isMail ? readMailUrl(plain) : readWebUrl(plain)
  if (!FORMS[known].fits(url, token !== undefined)) {
    throw new SyntaxError(`it is not like ${FORMS[known].form}`)
  }
  const { takes } = FORMS[known]
  const isStrange = [...url.searchParams.keys()].some((name) => takes?.includes(name) === false)
  if (takes !== undefined && isStrange) {
    throw new SyntaxError(`of parameters it takes ${takes.join(', ')} alone`)
  }
  return { kind: known, url: plain, ...(token !== undefined && { token }) }
}

function readMailUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined) throw new SyntaxError(`it is not like ${FORMS.mail.form}`)
  const { username, password } = url
  if (percentDecoded(`${username}${password}`) === undefined) {
    throw new SyntaxError('its user or password has a % that encodes nothing')
  }
  return url
}

/** Reads addresses with spaces between them: a URL may have a comma, and no space. */
export function readAddresses(text: string): readonly Address[] {
  const words = text.split(/\s+/).filter((word) => word !== '')
  if (words.length === 0) throw new SyntaxError('it is empty')
  return words.map((word) => readAddress(word))
}
