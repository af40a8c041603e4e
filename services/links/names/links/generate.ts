import type { Link } from '../../../../db/links/names/links.ts'
import { Fault } from '../../../../kernel/fault.ts'
import type { RandomBytes } from '../../../../kernel/tokens.ts'
import type { LinkRequest } from './input.ts'
import { createLink, type LinkParts } from './links.ts'
import { isSlug } from './slug.ts'
import type { Caller } from '../../people/users/groups.ts'

/** Without vowels no words come up, and none of 0 and o, or 1, i and l is taken for another. */
const LETTERS = '23456789bcdfghjkmnpqrstvwxyz'
/** 28 letters make 13 billion names: hard to guess, and no secret. */
const LENGTH = 7
/** How many names are tried: with a million links, one in 13,000 is taken. */
const MAX_TRIES = 5

/** Creates a link under a name that is made up. Throws the 409 of the last name that was tried. */
export async function createGenerated(
  parts: LinkParts & { random: RandomBytes },
  caller: Caller,
  input: LinkRequest,
  at: Date,
): Promise<Link> {
  for (let left = MAX_TRIES; ; left--) {
    try {
      return await createLink(parts, caller, { ...input, slug: generateSlug(parts.random) }, at)
    } catch (error) {
      const isTaken =
        error instanceof Fault && error.code === 'SLUG_CONFLICT' && error.field === 'slug'
      if (!isTaken || left <= 1) throw error
    }
  }
}

/** A slug that can be read out: `k7mw2xd`. */
function generateSlug(random: RandomBytes): string {
  for (;;) {
    const letters = [...random(2 * LENGTH)]
      // The same number of bytes stands for each letter.
      .filter((byte) => byte < 256 - (256 % LETTERS.length))
      .map((byte) => LETTERS[byte % LETTERS.length])
    const slug = letters.slice(0, LENGTH).join('')
    if (slug.length === LENGTH && isSlug(slug)) return slug
  }
}
