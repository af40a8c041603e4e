import { foldTag, partsOf } from '../links/input.ts'

/** How short links are written: with the keyword, and with the public address. */
export interface ShortAddress {
  keyword: string
  /** Public address of the service, without a slash at its end. */
  base: string
}

/** What was typed into a search, read. */
export interface SearchText {
  /** Each must stand in a link: in slug, title, address, description, tags or owners. */
  texts: readonly string[]
  /** The same for texts with an `@`; the whole addresses of owners count for these, too. */
  addresses: readonly string[]
  tags: readonly string[]
  /** Each must stand in the address or name of an owner. */
  owners: readonly string[]
}

const MAX_PARTS = 8
const OWNER = /^owner:(.+)$/i

/**
 * Reads a search: `#tag`, `owner:ada`, and texts. A short link as people write it, such as
 * `go/docs` or the whole address, counts as its name.
 */
export function readSearch(text: string, short: ShortAddress): SearchText {
  const texts: string[] = []
  const addresses: string[] = []
  const tags: string[] = []
  const owners: string[] = []
  for (const part of partsOf(text, /\s+/).slice(0, MAX_PARTS)) {
    const [, owner] = OWNER.exec(part) ?? []
    if (owner !== undefined) owners.push(owner)
    else if (/^#./.test(part)) tags.push(foldTag(part.slice(1)))
    else if (part.includes('@')) addresses.push(part)
    else {
      const inner = withoutPrefix(part, short)
      // A path after a name is no part of the link.
      const name = inner === undefined ? part : (inner.split(/[/?#]/)[0] ?? '')
      if (name !== '') texts.push(name)
    }
  }
  return { texts, addresses, tags: [...new Set(tags)], owners }
}

/** A short link's name with what follows it; undefined for a text that is no short link. */
function withoutPrefix(text: string, { keyword, base }: ShortAddress): string | undefined {
  return withoutStart(text, `${base}/`) ?? withoutStart(text, `${keyword}/`)
}

/**
 * The rest of a text that begins with an address, in any case, with or without `http://`; undefined
 * for a text that begins otherwise.
 */
export function withoutStart(text: string, start: string): string | undefined {
  const [given, bare] = [text, start].map((address) => address.replace(/^https?:\/\//i, ''))
  if (given === undefined || bare === undefined) return undefined
  const isStart = given.toLowerCase().startsWith(bare.toLowerCase())
  return isStart ? given.slice(bare.length) : undefined
}
