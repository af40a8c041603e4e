import type { Executor } from '../../../../db/client.ts'
import { linkQueries as q, type Link } from '../../../../db/links/names/links.ts'

/** What the words of a link are read from. */
type Named = Pick<Link, 'slug' | 'aliases' | 'title' | 'visibility'>

/** A letter alone begins too many words. */
const MIN_WORD = 2
const MAX_WORD = 64
/** The longest titles have more; the first ones say enough. */
const MAX_WORDS = 32

/** Comes after all characters of words. */
export const AFTER_WORDS = '\u{10ffff}'

/** The words of a text, in lower case, each once. */
export function wordsOf(text: string): readonly string[] {
  const words =
    text
      .normalize('NFKC')
      .toLowerCase()
      .match(/[\p{L}\p{M}\p{N}]+/gu) ?? []
  const cut = words.filter((word) => word.length >= MIN_WORD).map(cutWord)
  return [...new Set(cut)].slice(0, MAX_WORDS)
}

/** Stores the words of links whose names, title or visibility are new. */
export async function writeWords(tx: Executor, links: readonly Named[]): Promise<void> {
  const rows = links.map(({ slug, aliases, title, visibility }) => ({
    slug,
    words: wordsOf([slug, ...aliases, title].join(' ')),
    is_public: visibility === 'public',
  }))
  if (rows.length > 0) await q.writeWords(tx, { links: rows })
}

function cutWord(word: string): string {
  return [...word].slice(0, MAX_WORD).join('')
}
