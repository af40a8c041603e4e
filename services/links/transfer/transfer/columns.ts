import { badRequest } from '../../../../kernel/fault.ts'
import { foldColumn, type Row } from './rows.ts'
import { GATEHOUSE, sourceOf, SOURCES, type Column, type Meaning, type Source } from './sources.ts'

/** What becomes of a column of a file. */
export interface ColumnReport {
  column: string
  /** What it is here; null where it is not taken over. */
  becomes: string | null
  /** Why it is not, or how. */
  note: string
}

/** What is meant, where the name of the field does not say it. */
const NOTES: Partial<Readonly<Record<Meaning, readonly [becomes: string | null, note: string]>>> =
  {
    address: ['slug', 'the name after the host'],
    domain: [null, 'named at each link: all names are in one space here'],
    'own domain': [null, 'tells whether the domain is the default one'],
    unlisted: ['visibility', 'private where it is true'],
    closed: ['visibility', 'secure where it is true'],
    begins_at: [null, 'a link that begins later is refused'],
    max_visits: ['max_visits', 'what is left of it'],
    visits: ['max_visits', 'taken off the limit'],
    password: [null, 'a link with a password is refused'],
  }

/** Tells what a row's file is from. Throws the Fault of an unknown one. */
export function recognize(row: Row, isCsv: boolean): Source {
  const source = sourceOf(row)
  if (source !== undefined) return source
  if (!isCsv) throw unknownFile(`is JSON, and its links have ${namesOf(row)}`)
  if (!row.has('slug')) throw unknownFile(`has the columns ${namesOf(row)}`)
  if (!row.has('url')) throw badRequest('The header must have the column url')
  const known = Object.keys(GATEHOUSE.columns)
  const folded = new Set(known.map(foldColumn))
  const unknown = row.columns.find((name) => !folded.has(foldColumn(name)))
  if (unknown === undefined) return GATEHOUSE
  const form = `The first line must name columns: ${known.join(', ')}`
  throw badRequest(`${form}. It has the unknown column "${shown(unknown)}"`)
}

function unknownFile(what: string) {
  const names = SOURCES.filter(({ name }) => !name.includes('(')).map(({ name }) => name)
  return badRequest(
    `The file ${what}. A link needs slug and url, or the columns of ${names.join(', ')}`,
  )
}

/** Names and their characters that are shown. */
const [MAX_NAMES, MAX_SHOWN] = [12, 60]

function namesOf({ columns }: Row): string {
  const names = columns.slice(0, MAX_NAMES).map(shown)
  return [...names, ...(columns.length > MAX_NAMES ? ['…'] : [])].join(', ') || 'no names'
}

function shown(name: string): string {
  return name.slice(0, MAX_SHOWN)
}

/** What becomes of the columns of a row, in their order; of an object's members one by one. */
export function columnsOf(source: Source, row: Row): readonly ColumnReport[] {
  const known = Object.entries(source.columns)
  return row.columns.flatMap((name) => {
    const single = known.filter(([column]) => foldColumn(column) === foldColumn(name))
    const inside = known.filter(([column]) => column.startsWith(`${name}.`) && row.has(column))
    const found = inside.length > 0 ? inside : single.slice(0, 1)
    if (found.length === 0) return [describe(shown(name), { left: 'no field of a link here' })]
    return found.map(([column, what]) => describe(column.replace(/\.0$/, ''), what))
  })
}

function describe(column: string, what: Column): ColumnReport {
  if (typeof what !== 'string') {
    if ('left' in what) return { column, becomes: null, note: what.left }
    return { column, becomes: null, note: `told at each link that loses by it: ${what.told}` }
  }
  const [becomes, note] = NOTES[what] ?? [what, '']
  return { column, becomes, note }
}
