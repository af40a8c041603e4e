import { Resolver } from 'node:dns/promises'
import { isIPv6 } from 'node:net'
import * as Type from '../../../../kernel/schema.ts'
import { codeOf } from '../../../../kernel/log.ts'
import { redactLine } from '../../redact.ts'
import { defineCheck, failed, Host, passed } from './check.ts'

/** Characters of what was found in a message. */
const MAX_FOUND = 300

/** How the records of a type are looked up, each as text. */
const RECORDS = {
  A: (resolver: Resolver, host: string) => resolver.resolve4(host),
  AAAA: (resolver: Resolver, host: string) => resolver.resolve6(host),
  CNAME: (resolver: Resolver, host: string) => resolver.resolveCname(host),
  NS: (resolver: Resolver, host: string) => resolver.resolveNs(host),
  async MX(resolver: Resolver, host: string) {
    const found = await resolver.resolveMx(host)
    return found.map(({ priority, exchange }) => `${priority} ${exchange}`)
  },
  async TXT(resolver: Resolver, host: string) {
    // A long text comes in pieces of 255 bytes, of which Node makes a character each.
    const found = await resolver.resolveTxt(host)
    return found.map((pieces) => Buffer.from(pieces.join(''), 'latin1').toString('utf8'))
  },
} as const
type RecordType = keyof typeof RECORDS
const RECORD_TYPES = Object.keys(RECORDS) as RecordType[]

const NO_RECORD = 'has no such record'

/** What the codes of the resolver mean. */
const PROBLEMS: Readonly<Record<string, string>> = {
  ENODATA: NO_RECORD,
  ENOTFOUND: 'no such host',
  ETIMEOUT: 'the name server does not answer',
  ECONNREFUSED: 'the name server does not answer',
  ESERVFAIL: 'the name server can not find out (SERVFAIL)',
  EREFUSED: 'the name server refuses to answer (REFUSED)',
}

/** Name servers know a name, and an expected record of it. */
export const dnsCheck = defineCheck('dns', {
  takes: {
    host: Host,
    /** Addresses of both families when absent. */
    record: Type.Optional(Type.Unsafe<RecordType>({ enum: RECORD_TYPES })),
    /** Must be among the records found. */
    value: Type.Optional(Type.String({ minLength: 1, maxLength: 4_000 })),
    /** Address of the name server that is asked instead of the system's. */
    server: Type.Optional(Type.String()),
  },
  level: 'critical',
  nameOf: ({ host, record, server }) =>
    ['dns', record, host, server && `at ${server}`].filter(Boolean).join(' '),
  peerOf: ({ server = 'name server' }) => server,
  mistakeOf({ host, server }) {
    if (host.startsWith('[')) return ['/host', 'must be a name, no address in brackets']
    if (server === undefined || isServer(server)) return undefined
    return ['/server', 'must be an IP address with or without a port, such as 192.0.2.53:5353']
  },
  async run({ host, record, value, server }, { signal, redact }) {
    // Unlike the look-ups of the system, its queries can be ended, and take no thread.
    const resolver = new Resolver()
    if (server !== undefined) resolver.setServers([server])
    const cancel = (): void => resolver.cancel()
    signal.addEventListener('abort', cancel, { once: true })
    try {
      const found = await recordsOf(resolver, host, record)
      // A name that another one stands for, which has no such record.
      if (found.length === 0) return failed(NO_RECORD)
      const message = redactLine(`resolves to ${found.join(', ')}`, MAX_FOUND, redact)
      const isFound = value === undefined || found.some((one) => isSame(one, value, record))
      return isFound ? passed(message) : failed(`${message}, expected ${value}`)
    } catch (error) {
      const problem = PROBLEMS[codeOf(error) ?? '']
      if (problem === undefined) throw error
      return failed(problem)
    } finally {
      signal.removeEventListener('abort', cancel)
    }
  },
})

async function recordsOf(resolver: Resolver, host: string, record: RecordType | undefined) {
  if (record !== undefined) return RECORDS[record](resolver, host)
  const [four, six] = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
  const found = [four, six].flatMap((one) => (one.status === 'fulfilled' ? one.value : []))
  // Most names have addresses of one family.
  if (found.length === 0 && four.status === 'rejected') throw four.reason
  return found
}

/** Addresses and names have several spellings: upper and lower case, a dot at the end; texts have one. */
function isSame(found: string, value: string, record: RecordType | undefined): boolean {
  if (record === 'TXT') return found === value
  return plain(found) === plain(value)
}

function plain(text: string): string {
  // A URL has the shortest spelling of an address.
  if (isIPv6(text)) return new URL(`http://[${text}]`).hostname
  return text.toLowerCase().replace(/\.$/, '')
}

function isServer(server: string): boolean {
  try {
    new Resolver().setServers([server])
    return true
  } catch {
    return false
  }
}
