import { foldTag, partsOf } from '../links/input.ts'
import { behindHost, type ShortAddress } from '../links/short-address.ts'

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
 * `go/docs`, `docs/` or the whole address, counts as its name.
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
      const name = nameIn(part, short) ?? part
      if (name !== '') texts.push(name)
    }
  }
  return { texts, addresses, tags: [...new Set(tags)], owners }
}

/** The name of a short link, without the path after it; undefined for another text. */
function nameIn(text: string, short: ShortAddress): string | undefined {
  const inner = behindHost(text, short)
  if (inner !== undefined) return inner.split(/[/?#+]/)[0]
  const [, bare] = /^\/*([^/]+)\/*$/.exec(text) ?? []
  return bare
}
