/** What JSON can say; members that are undefined are left out. */
export type Plain =
  | string
  | number
  | boolean
  | null
  | readonly Plain[]
  | { readonly [name: string]: Plain | undefined }

/**
 * A value as YAML 1.2 in block style, for people to read. Text that could be taken for anything else
 * is in double quotes, where YAML reads what JSON writes.
 */
export function toYaml(value: Plain): string {
  return `${node(value, 0, '').trimStart()}\n`
}

/** A node at a depth; `lead` stands before what fits on the line of its key or dash. */
function node(value: Plain, depth: number, lead: string): string {
  if (typeof value === 'string') return lead + scalar(value)
  if (typeof value !== 'object' || value === null) return lead + JSON.stringify(value)
  const indent = `\n${'  '.repeat(depth)}`
  if (isList(value)) {
    if (value.length === 0) return `${lead}[]`
    // An item's first line stands beside its dash.
    return value.map((item) => `${indent}- ${node(item, depth + 1, '').trimStart()}`).join('')
  }
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  if (members.length === 0) return `${lead}{}`
  return members
    .map(([name, member]) => `${indent}${scalar(name)}:${node(member ?? null, depth + 1, ' ')}`)
    .join('')
}

/** Begins with a letter, a slash or `$`, holds nothing that YAML gives a meaning, and is no other type's name. */
const PLAIN = /^[A-Za-z/$][\w ./{}()$'"@,;=<>!?*-]*$/
const OTHER_TYPE = /^(true|false|null|yes|no|on|off|y|n)$/i

function scalar(text: string): string {
  if (PLAIN.test(text) && !text.endsWith(' ') && !OTHER_TYPE.test(text)) return text
  // JSON leaves these as they are, YAML counts them as line ends or as unprintable.
  return JSON.stringify(text).replaceAll(
    /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

function isList(value: object): value is readonly Plain[] {
  return Array.isArray(value)
}
