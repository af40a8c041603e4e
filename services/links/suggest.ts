import type { Executor } from '../../db/client.ts'
import type { Suggestion, User } from '../../db/links/rows.ts'
import { suggestLinks } from '../../db/links/visits.ts'
import { isSlug, SLUG_LONGEST } from './slug.ts'

const LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789-'
const MOST = 5
/** A slug has 74 neighbours a letter; of a longer one only those with two letters swapped or one too many are tried. */
const LONGEST_FOR_ALL = 10
/** A shorter beginning would suggest anything. */
const SHORTEST_PREFIX = 2

/**
 * Links that a visitor may have meant by text that is no link's slug: a letter wrong, missing, too
 * many or two in the wrong order, or a slug that begins with the text. Only what the visitor may see.
 */
export function suggestionsFor(
  db: Executor,
  text: string,
  visitor: User | undefined,
): Promise<readonly Suggestion[]> {
  const asked = text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, SLUG_LONGEST)
  if (asked.length < SHORTEST_PREFIX) return Promise.resolve([])
  return suggestLinks(db, neighbours(asked), asked, visitor, MOST)
}

/** The text itself and all slugs at one mistake from it. */
function neighbours(text: string): readonly string[] {
  const found = new Set([text])
  for (let at = 0; at <= text.length; at++) {
    const [head, tail] = [text.slice(0, at), text.slice(at)]
    found.add(head + tail.slice(1))
    found.add(head + tail.slice(1, 2) + tail.slice(0, 1) + tail.slice(2))
    if (text.length > LONGEST_FOR_ALL) continue
    for (const letter of LETTERS) {
      found.add(head + letter + tail.slice(1))
      found.add(head + letter + tail)
    }
  }
  return [...found].filter(isSlug)
}
