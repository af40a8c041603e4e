import { badRequest } from '../../../../kernel/fault.ts'
import { INSTANT_FORM, readInstant } from '../../../../kernel/time.ts'
import { foreignPlaceIn, withoutForeignPlaces } from '../../names/links/foreign-places.ts'
import { isTag, MAX_DESCRIPTION, MAX_TITLE } from '../../names/links/input.ts'
import { withoutBraces, withoutPlaces } from '../../names/links/placeholders.ts'
import { fromTemplate } from '../../names/links/templates.ts'
import type { TargetFields } from '../../names/links/target.ts'
import { slugOfName, type ImportLine, type LinkData } from './records.ts'
import type { Row } from './rows.ts'
import type { Meaning, Source } from './sources.ts'
import { readForeignTime } from './times.ts'

/** Separates tags, addresses and aliases in a cell; a tag may have spaces in it. */
const SEPARATOR = /[;,|]/

/** Words of other programs for a link that leads nowhere any more. */
const ARCHIVED = new Set(['true', '1', 'yes', 'archived', 'hidden', 'inactive'])

const isTrue = (text: string) => /^(?:true|1|yes)$/i.test(text.trim())

/** What a row says by the meaning of its columns. */
interface Cells {
  /** The first text of the columns with this meaning; undefined where the row has none of them. */
  text(meaning: Meaning): string | undefined
  /** The same without spaces around it; empty for none. */
  word(meaning: Meaning): string
  parts(meaning: Meaning): readonly string[] | undefined
  /** The name of the first such column that the program has, for messages. */
  nameOf(meaning: Meaning): string | undefined
}

/** Databases write this where there is no text. */
function withoutNull(text: string): string {
  return text === 'NULL' ? '' : text
}

function cellsOf({ columns }: Source, row: Row): Cells {
  const all = Object.entries(columns)
  const named = (meaning: Meaning) =>
    all.filter(([, what]) => what === meaning).map(([column]) => column)
  const present = (meaning: Meaning) => named(meaning).filter((column) => row.has(column))
  function text(meaning: Meaning) {
    const texts = present(meaning).map((column) => withoutNull(row.text(column)))
    return texts.find((found) => found !== '') ?? texts[0]
  }
  return {
    text,
    word: (meaning) => text(meaning)?.trim() ?? '',
    parts(meaning) {
      const [column] = present(meaning)
      return column === undefined ? undefined : row.parts(column, SEPARATOR)
    },
    nameOf: (meaning) => named(meaning)[0],
  }
}

/** Reads a row of Gatehouse's own CSV. An empty cell clears a text, and leaves other fields. */
export function readOwnLink(source: Source, row: Row): ImportLine {
  const { text, word, parts } = cellsOf(source, row)
  const { line, problem } = row
  return {
    line,
    slug: word('slug'),
    read() {
      if (problem !== undefined) throw badRequest(problem)
      const maxVisits = word('max_visits')
      return {
        fields: {
          url: word('url'),
          title: text('title')?.trim(),
          description: text('description'),
          tags: parts('tags'),
          visibility: word('visibility').toLowerCase() || undefined,
          append_path: readBoolean(word('append_path')),
          expires_at: word('expires_at') || undefined,
          max_visits: readNumber(maxVisits) ?? (maxVisits || undefined),
          archived: readBoolean(word('archived')),
          aliases: parts('aliases'),
        },
        owner: word('owner'),
        coOwners: parts('co_owners') ?? [],
        sharedWith: parts('shared_with') ?? [],
        created_at: readTime('created_at', word('created_at')),
        updated_at: readTime('updated_at', word('updated_at')),
        note: '',
      }
    },
  }
}

/** Other words stay, to be refused with the fields; undefined for none. */
function readBoolean(text: string): boolean | string | undefined {
  const word = text.toLowerCase()
  if (word === '') return undefined
  return word === 'true' || word === 'false' ? word === 'true' : word
}

function readNumber(text: string): number | undefined {
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined
}

function readTime(name: string, text: string): Date | undefined {
  if (text === '') return undefined
  const time = readInstant(text)
  if (time === undefined) throw badRequest(`${name} must be ${INSTANT_FORM}`)
  return time
}

/** Reads a row of another program. What it has and links here don't, the note says. */
export function readForeignLink(source: Source, row: Row): ImportLine {
  const cells = cellsOf(source, row)
  const { name, domain, given } = nameOf(source, cells)
  const slug = slugOfName(name)
  return {
    line: row.line,
    slug,
    name: domain === '' ? given : `${domain}/${given}`,
    read(now) {
      if (row.problem !== undefined) throw badRequest(row.problem)
      const url = cells.word('url')
      if (name === '')
        throw badRequest(`${cells.nameOf('slug') ?? cells.nameOf('address')} is missing`)
      if (url === '') throw badRequest(`${cells.nameOf('url')} is missing`)
      refuseConditions(cells, now)
      const title = shortened('title', cells.text('title')?.trim(), MAX_TITLE)
      const about = shortened('description', cells.text('description'), MAX_DESCRIPTION)
      const tags = cells.parts('tags')
      const lost = tags?.filter((tag) => !isTag(tag)) ?? []
      const { notes, ...end } = endOf(cells)
      const created = readForeignTime(cells.word('created_at'))
      const updated = readForeignTime(cells.word('updated_at'))
      const note = [
        slug !== given && `was "${given}"`,
        domain !== '' && `of ${domain}`,
        title.note,
        about.note,
        lost.length > 0 && `without the tags ${lost.join(', ')}`,
        ...notes,
        ...lossesOf(source, row),
        created === 'unreadable' &&
          `created at a time that can't be read, ${cells.word('created_at')}`,
      ]
      return {
        fields: {
          ...targetOf(source, url),
          title: title.text,
          description: about.text,
          tags: tags?.filter(isTag),
          visibility: visibilityOf(cells),
          aliases: cells.parts('aliases')?.map(slugOfName),
          ...end,
        },
        owner: cells.word('owner'),
        coOwners: [],
        sharedWith: [],
        created_at: created === 'unreadable' ? undefined : created,
        updated_at: updated === 'unreadable' ? undefined : updated,
        note: note.filter((part) => part !== false && part !== '').join('; '),
      } satisfies LinkData
    },
  }
}

/** The name of a link, and its domain; an empty one is the program's default, which no note names. */
function nameOf({ places }: Source, { text, word }: Cells) {
  const given = word('slug') || pathOf(word('address'))
  // Trotto writes the places into the name, too.
  const [first = ''] = given.split('/%s', 1)
  const name = places === '%s' ? first : given
  const isDefault = text('own domain') === ''
  return { given, name, domain: isDefault ? '' : word('domain') }
}

/** The path of a short address, with or without its scheme, as the name that it is. */
function pathOf(address: string): string {
  const [, path = ''] = /^(?:[a-z]+:\/\/)?[^/]*\/(.*?)\/?$/i.exec(address) ?? []
  return path
}

/** Throws the Fault of a link that would be open to more people here, or earlier. */
function refuseConditions({ word }: Cells, now: Date): void {
  const password = word('password')
  if (password !== '' && password !== 'false' && password !== '0') {
    const way = 'create it here as a secure link and share it'
    throw badRequest(`asks for a password, which links here don't have; ${way}`)
  }
  const begins = readForeignTime(word('begins_at'))
  if (begins === 'unreadable') throw badRequest(`begins at a time that can't be read`)
  if (begins !== undefined && begins > now) {
    throw badRequest(`begins at ${begins.toISOString()}, and links here have no beginning`)
  }
}

/** A text that is not longer than here, and what the report says if it was. */
function shortened(name: string, text: string | undefined, most: number) {
  if (text === undefined) return { text, note: '' }
  const short = [...text].slice(0, most).join('')
  return { text: short, note: short === text ? '' : `${name} cut to ${most} characters` }
}

function visibilityOf({ word }: Cells): string | undefined {
  if (isTrue(word('closed'))) return 'secure'
  return isTrue(word('unlisted')) ? 'private' : undefined
}

/**
 * The end of a link. Its visits stay where they were counted, so a limit counts what is left of it;
 * a link without any left is archived.
 */
function endOf({ text, word, nameOf }: Cells) {
  const isOver = ARCHIVED.has(word('archived').toLowerCase())
  const archived = isOver ? { archived: true } : {}
  const expires = readForeignTime(word('expires_at'))
  if (expires === 'unreadable') throw badRequest(`${nameOf('expires_at')} must be ${INSTANT_FORM}`)
  const expiry =
    text('expires_at') === undefined ? {} : { expires_at: expires?.toISOString() ?? null }
  const notes = isOver ? ['archived, as it was there'] : []
  if (text('max_visits') === undefined) return { ...expiry, ...archived, notes }
  const limit = readNumber(word('max_visits'))
  if (limit === undefined) return { ...expiry, ...archived, max_visits: null, notes }
  const left = limit - (readNumber(word('visits')) ?? 0)
  if (left > 0) {
    const note = `${left} of ${limit} visits are left`
    return { ...expiry, ...archived, max_visits: left, notes: [note, ...notes] }
  }
  const note = `archived: its ${limit} visits are used up`
  return { ...expiry, archived: true, max_visits: limit, notes: [note] }
}

/** What the program did with this link and links here don't. */
function lossesOf({ columns }: Source, row: Row): readonly string[] {
  return Object.entries(columns).flatMap(([column, what]) => {
    if (typeof what === 'string' || 'left' in what || !row.has(column)) return []
    const text = row.text(column).trim()
    const isSet = !['', 'false', '0', '{}', '[]'].includes(text)
    return (what.when === 'false' ? text === 'false' : isSet) ? [what.told] : []
  })
}

/** An address as it is written here, with the places that the program has. */
function targetOf({ places }: Source, url: string): Partial<TargetFields> {
  if (places === 'golink') {
    const { url: target, append_path } = fromTemplate(url)
    return { url: withoutForeignPlaces(target), append_path }
  }
  if (places === '%s') {
    const text = withoutBraces(url)
    return { url: foreignPlaceIn(text)?.meant?.url ?? text }
  }
  if (places === '{*}') return { url: url.split('{*}').map(asText).join('{*}') }
  return { url: asText(url) }
}

function asText(url: string): string {
  return withoutForeignPlaces(withoutPlaces(url))
}
