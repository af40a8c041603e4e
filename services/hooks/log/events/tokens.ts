import { readMembers, type FilterText } from './filter.ts'

// The filters of the log as one text: `type:invoice.* customer:Globex "two words"`. A name that is
// no filter is the name of a member of the payload.

/** The filters that have a name in the text. */
const NAMES = {
  type: 'event_type',
  provider: 'provider',
  since: 'since',
  until: 'until',
  verified: 'verified',
  header: 'header',
  json: 'json',
} as const
type TokenName = keyof typeof NAMES
type Filters = Pick<FilterText, (typeof NAMES)[TokenName] | 'text'>

const NAME = String.raw`[\w-]+(?:\.[\w-]+)*`
/** A name without a value, or a value, which may have a name and quotation marks. An address is one. */
const TOKEN = new RegExp(
  String.raw`(${NAME}):(?=\s|$)|(?:(${NAME}):(?!//))?(?:"([^"]*)"?|(\S+))`,
  'g',
)

/** Reads the filters of a text. A name without a value is one that is still being typed. */
export function readTokens(text: string): Partial<Filters> {
  const filters: Partial<Filters> = {}
  const members: string[] = []
  const words: string[] = []
  for (const [, unfinished, name, quoted, bare] of text.matchAll(TOKEN)) {
    if (unfinished !== undefined) continue
    const value = quoted ?? bare ?? ''
    if (name === undefined) words.push(value)
    else if (name === 'json') members.push(value)
    else if (isName(name)) Object.assign(filters, { [NAMES[name]]: value })
    else members.push(`${name.includes('.') ? '' : '*.'}${name}=${value}`)
  }
  if (members.length > 0) filters.json = members.join('\n')
  if (words.length > 0) filters.text = words.join(' ')
  return filters
}

function isName(name: string): name is TokenName {
  return Object.hasOwn(NAMES, name)
}

/** The text that `readTokens` reads as these filters. */
export function tokensOf(filters: Filters): string {
  const named = (Object.keys(NAMES) as TokenName[])
    .filter((name) => name !== 'json' && filters[NAMES[name]] !== '')
    .map((name) => `${name}:${quoted(filters[NAMES[name]])}`)
  const members = (readMembers(filters.json) ?? []).map(([path, value]) => {
    const name = path.startsWith('*.') ? path.slice(2) : path.includes('.') ? path : undefined
    const isMember = name !== undefined && !isName(name)
    return isMember ? `${name}:${quoted(value)}` : `json:${quoted(`${path}=${value}`)}`
  })
  const words = filters.text === '' ? [] : [wordsOf(filters.text)]
  return [...named, ...members, ...words].join(' ')
}

function quoted(value: string): string {
  return value === '' || /[\s"]/.test(value) ? `"${value}"` : value
}

/** Words stay as they were typed; others would be read as tokens. */
function wordsOf(text: string): string {
  const isPlain = readTokens(text).text === text && Object.keys(readTokens(text)).length === 1
  return isPlain ? text : `"${text}"`
}
