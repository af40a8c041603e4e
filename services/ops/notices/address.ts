import { readWebUrl } from '../../../kernel/variables.ts'

/** The forms in which notices are sent. */
export const KINDS = ['json', 'ntfy'] as const
export type Kind = (typeof KINDS)[number]

/** Where notices go, and in which form. The URL may hold a key. */
export interface Address {
  kind: Kind
  url: string
}

/** The accepted form of an address, in words. */
export const ADDRESS_FORM =
  'an http:// or https:// URL for notices as JSON, or ntfy+https://HOST/TOPIC'

/** Reads an address. Throws an error whose message quotes no part of it. */
export function readAddress(text: string): Address {
  const plain = text.replace(/^ntfy\+/, '')
  const url = readWebUrl(plain)
  const kind = text === plain ? 'json' : 'ntfy'
  if (kind === 'ntfy' && !/^\/[^/]+$/.test(url.pathname)) {
    throw new SyntaxError('it names no topic')
  }
  return { kind, url: plain }
}

/** Reads addresses with spaces between them: a URL may have a comma, and no space. */
export function readAddresses(text: string): readonly Address[] {
  const words = text.split(/\s+/).filter((word) => word !== '')
  if (words.length === 0) throw new SyntaxError('it is empty')
  return words.map(readAddress)
}
