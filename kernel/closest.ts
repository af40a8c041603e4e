/** Words that people take for each other. */
const SAME_MEANING = [
  ['add', 'create', 'new', 'make'],
  ['remove', 'revoke', 'delete', 'rm'],
  ['list', 'ls'],
  ['show', 'get', 'info'],
  ['set', 'edit', 'update', 'change'],
  ['serve', 'start', 'run', 'up'],
  ['check', 'status', 'doctor'],
  ['init', 'setup', 'configure'],
]

/** Longer words are not compared. */
const MAX_LENGTH = 60

/**
 * The one of some words that was meant by another one: the same with a few letters wrong, its
 * beginning, or a word of the same meaning. Undefined if none is near.
 */
function closestTo(word: string, words: readonly string[]): string | undefined {
  if (word.length > MAX_LENGTH) return undefined
  const meaning = SAME_MEANING.find((group) => group.includes(word)) ?? []
  const same = words.find((known) => meaning.includes(known))
  if (same !== undefined) return same
  const near = words
    .map((known) => ({ known, distance: distanceOf(word, known) }))
    .filter(({ known, distance }) => distance <= Math.max(1, Math.floor(known.length / 3)))
    .toSorted((one, other) => one.distance - other.distance)
  return near[0]?.known ?? words.find((known) => word.length > 2 && known.startsWith(word))
}

/** `; did you mean "serve"?`, or nothing. */
export function meantText(word: string, words: readonly string[]): string {
  const meant = closestTo(word, words)
  return meant === undefined ? '' : `; did you mean ${meant}?`
}

/** How many letters must be changed, added, removed or swapped with a neighbour. */
function distanceOf(one: string, other: string): number {
  let before: readonly number[] = []
  let row: readonly number[] = Array.from({ length: other.length + 1 }, (_, at) => at)
  for (let at = 1; at <= one.length; at++) {
    const next = [at]
    for (let to = 1; to <= other.length; to++) {
      const isSame = one[at - 1] === other[to - 1]
      const isSwap = one[at - 1] === other[to - 2] && one[at - 2] === other[to - 1]
      const changed = (row[to - 1] ?? 0) + (isSame ? 0 : 1)
      const swapped = isSwap ? (before[to - 2] ?? 0) + 1 : changed
      next[to] = Math.min(changed, swapped, (row[to] ?? 0) + 1, (next[to - 1] ?? 0) + 1)
    }
    before = row
    row = next
  }
  return row[other.length] ?? 0
}
