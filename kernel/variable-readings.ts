import { parseBlocks, type AddressSet } from './net/addresses.ts'

// How the text of each kind of variable is read. What is not accepted throws SyntaxError or RangeError with a reason that
// quotes no value.

export function parseBaseUrl(text: string): string {
  const url = webUrl(text)
  if (url.pathname !== '/' || url.search !== '') throw new SyntaxError('it is no such URL')
  return url.origin
}

/** An http or https URL; a user or a password in it would be shown where the address is. */
function webUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const plain = url?.username === '' && url.password === '' && /^https?:$/.test(url.protocol)
  if (url === undefined || !plain) throw new SyntaxError('it is no such URL')
  return url
}

export function parseDatabaseUrl(text: string): string {
  if (!/^postgres(ql)?:\/\//.test(text)) throw new SyntaxError('it does not start with postgres://')
  // Throws URIError where the client would: at a % that starts no encoded byte.
  decodeURIComponent(/^\w+:\/\/([^/?#]*)@/.exec(text)?.[1] ?? '')
  // Several hosts, with commas between them, are none of a URL's own: each is looked at alone.
  const [, start = '', hosts = '', rest = ''] =
    /^(\w+:\/\/(?:[^@/?]*@)?)([^/?]*)(.*)$/s.exec(text) ?? []
  if (!hosts.split(',').every((host) => URL.canParse(start + host + rest))) {
    throw new SyntaxError('it is no such URL')
  }
  return text
}

export function parseQueueUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^rediss?:$/.test(url.protocol) || url.hostname === '') {
    throw new SyntaxError('it is no such URL')
  }
  if (!/^(\/\d{0,3})?$/.test(url.pathname)) throw new SyntaxError('its path is no database number')
  // Throws URIError where the broker's client would: at a % that starts no encoded byte.
  decodeURIComponent(url.username + url.password)
  return text
}

export function parseChannels(text: string): readonly string[] {
  const channels = text.split(',').map((channel) => channel.trim())
  if (!channels.every((channel) => /^[^\p{C}\p{Z}]{1,200}$/u.test(channel))) {
    throw new SyntaxError('a name in it is empty, too long or has a space')
  }
  return [...new Set(channels)]
}

export function parseHeaderName(text: string): string {
  if (!/^[A-Za-z0-9-]{1,100}$/.test(text)) throw new SyntaxError('it is no such name')
  return text.toLowerCase()
}

export function parseKeyword(text: string): string {
  if (!/^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/i.test(text))
    throw new SyntaxError('it is no such name')
  return text.toLowerCase()
}

export function parseProxies(text: string): AddressSet {
  return parseBlocks(text.split(',').map((block) => block.trim()))
}

export function parseSize(text: string): number {
  const match = /^(\d{1,9})(B|KiB|MiB)?$/.exec(text)
  const unit = { B: 1, KiB: 1024, MiB: 1024 * 1024 }[match?.[2] ?? 'B'] ?? 1
  const size = Number(match?.[1]) * unit
  if (!(size >= 1 && size <= 100 * 1024 * 1024)) throw new RangeError('it is no such size')
  return size
}

export function parseName(text: string): string {
  const problem = nameProblem(text)
  if (problem !== undefined) throw new SyntaxError(`it ${problem}`)
  return text
}

/** What is wrong with the name of a model, wherever it is given. */
export function nameProblem(text: string): string | undefined {
  if (text.trim() === '' || text.length > 200) return 'must have 1 to 200 characters'
  if (/\p{Cc}/u.test(text)) return 'must have no control characters'
  // A headless agent is given it as an argument, and might take it for one of its flags.
  return text.startsWith('-') ? 'must not begin with -' : undefined
}

export function parseModelUrl(text: string): string {
  const url = webUrl(text)
  // Requests append to it: what stood behind a ? or a # would swallow their path.
  if (!/\/v1\/?$/.test(url.pathname) || /[?#]/.test(url.href)) {
    throw new SyntaxError('it is no such URL')
  }
  return url.href.replace(/\/$/, '')
}

export function parseTier(text: string): 1 | 2 | 3 {
  if (text === '1' || text === '2' || text === '3') return Number(text) as 1 | 2 | 3
  throw new RangeError('there is no such tier')
}

export function parseSwitch(text: string): boolean {
  if (text !== 'true' && text !== 'false') throw new SyntaxError('it is neither')
  return text === 'true'
}

export function parseRunner(text: string): 'auto' | 'probe' | 'model' | 'cli' {
  if (text === 'auto' || text === 'probe' || text === 'model' || text === 'cli') return text
  throw new SyntaxError('there is no such runner')
}

/** Words between spaces; a word in double quotes, which stand around the whole of it, may have spaces. */
export function parseCommand(text: string): readonly string[] {
  if (!/^\s*((?:"[^"]*"|[^\s"]+)(?:\s+|$))*$/.test(text)) {
    throw new SyntaxError('a quote in it is not closed, or stands within a word')
  }
  const words = [...text.matchAll(/"([^"]*)"|[^\s"]+/g)].map(([word, quoted]) => quoted ?? word)
  if (words.length === 0) throw new SyntaxError('it is empty')
  return words
}

export function parseAmount(text: string): number {
  if (!/^\d{1,7}(\.\d{1,4})?$/.test(text)) throw new SyntaxError('it is no amount')
  return Number(text)
}

export function parseSeconds(text: string, least: number, most: number): number {
  const seconds = /^\d{1,10}$/.test(text) ? Number(text) : -1
  if (seconds < least || seconds > most) throw new RangeError('it is no such number')
  return seconds
}

export function parseNotifyUrl(text: string): string {
  const plain = text.replace(/^ntfy\+/, '')
  const url = webUrl(plain)
  if (text !== plain && !/^\/[^/]+$/.test(url.pathname)) throw new SyntaxError('it names no topic')
  return text
}

/** A key: 32 bytes as base64. */
export function parseSecretKey(text: string): Buffer {
  if (!/^[A-Za-z0-9+/]{43}=$/.test(text)) throw new SyntaxError('it is no such text')
  return Buffer.from(text, 'base64')
}
