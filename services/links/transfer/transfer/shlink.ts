import { badRequest } from '../../../../kernel/fault.ts'
import { isList, memberAt, numberOf, parseObject, stringOf } from '../../../../kernel/json.ts'
import { isTag, MAX_TITLE } from '../../names/links/input.ts'
import { withoutPlaces } from '../../names/links/placeholders.ts'
import { checkCells, readCells } from './csv.ts'
import { readImportTime, slugOfName, type LinkRecord } from './records.ts'

/** The columns of a CSV by Shlink's web client. */
const CSV_COLUMNS = ['createdAt', 'domain', 'shortCode', 'longUrl', 'title', 'tags']

/** A short URL of Shlink: the API says all of it, a CSV the first part. */
interface ShortUrl {
  shortCode: string
  longUrl: string
  title: string
  tags: readonly string[]
  /** Empty for the default domain. */
  domain: string
  created: string
  rules?: Rules
}

/** What decides where a short URL leads, and for how long. */
interface Rules {
  validSince: string
  validUntil: string
  maxVisits: number | undefined
  visits: number
  /** What Shlink does and links here don't. */
  losses: readonly string[]
}

/** Reads a short URL as Shlink's API (v3) lists it. */
export function readShlink(text: string): LinkRecord {
  const object = parseObject(text)
  const word = (path: string) => stringOf(memberAt(object, path))?.toWellFormed() ?? ''
  const tags = memberAt(object, 'tags')
  const losses = [
    object?.['hasRedirectRules'] === true && 'without its redirect rules',
    object?.['forwardQuery'] === false && 'passes queries on, which it did not',
    object?.['crawlable'] === true && 'closed to search engines, which it was not',
  ]
  return recordOf({
    shortCode: word('shortCode'),
    longUrl: word('longUrl'),
    title: word('title'),
    tags: isList(tags) ? tags.filter((tag) => typeof tag === 'string') : [],
    domain: word('domain'),
    created: word('dateCreated'),
    rules: {
      validSince: word('meta.validSince'),
      validUntil: word('meta.validUntil'),
      maxVisits: numberOf(memberAt(object, 'meta.maxVisits')),
      // Shlink before 4 may have a number alone.
      visits: numberOf(memberAt(object, 'visitsSummary.total') ?? object?.['visitsCount']) ?? 0,
      losses: losses.filter((loss) => loss !== false),
    },
  })
}

/** Whether a header is that of a CSV by Shlink's web client. */
export function isShlinkHeader(columns: readonly string[]): boolean {
  return CSV_COLUMNS.every((column) => columns.includes(column))
}

/** Reads a record of such a CSV. It names all domains, and has no ends of short URLs. */
export function readShlinkCsv(text: string, columns: readonly string[]): LinkRecord {
  const cells = readCells(text)
  const cell = (name: string) => cells?.[columns.indexOf(name)] ?? ''
  const record = recordOf({
    shortCode: cell('shortCode'),
    longUrl: cell('longUrl'),
    title: cell('title'),
    tags: cell('tags').split('|').filter(Boolean),
    domain: cell('domain'),
    created: cell('createdAt'),
  })
  return {
    ...record,
    read(now) {
      checkCells(cells, columns)
      return record.read(now)
    },
  }
}

function recordOf(shortUrl: ShortUrl): LinkRecord {
  const { shortCode, longUrl, title, tags, domain, created, rules } = shortUrl
  const slug = slugOfName(shortCode)
  return {
    slug,
    name: domain === '' ? shortCode : `${domain}/${shortCode}`,
    read(now) {
      if (shortCode === '') throw badRequest('shortCode is missing')
      if (longUrl === '') throw badRequest('longUrl is missing')
      const since = readImportTime('validSince', rules?.validSince ?? '')
      if (since !== undefined && since > now) {
        throw badRequest(`begins at ${since.toISOString()}, and links here have no beginning`)
      }
      const { notes, ...end } = rules === undefined ? { notes: [] } : endOf(rules)
      const shortTitle = [...title].slice(0, MAX_TITLE).join('')
      const lost = tags.filter((tag) => !isTag(tag))
      const note = [
        slug !== shortCode && `was "${shortCode}"`,
        domain !== '' && `of ${domain}`,
        shortTitle !== title && `title cut to ${MAX_TITLE} characters`,
        lost.length > 0 && `without the tags ${lost.join(', ')}`,
        ...notes,
      ]
      return {
        fields: {
          url: withoutPlaces(longUrl),
          title: shortTitle,
          tags: tags.filter(isTag),
          ...end,
        },
        owner: '',
        coOwners: [],
        sharedWith: [],
        created_at: readImportTime('dateCreated', created),
        updated_at: undefined,
        note: note.filter((part) => part !== false).join('; '),
      }
    },
  }
}

/**
 * The end of a short URL. Its visits stay in Shlink, so a limit counts what is left of it; a link
 * without any left is archived.
 */
function endOf({ validUntil, maxVisits, visits, losses }: Rules) {
  const expires_at = validUntil === '' ? null : validUntil
  if (maxVisits === undefined) return { expires_at, max_visits: null, notes: losses }
  const left = maxVisits - visits
  if (left > 0) {
    const note = `${left} of ${maxVisits} visits are left`
    return { expires_at, max_visits: left, notes: [note, ...losses] }
  }
  const note = `archived: its ${maxVisits} visits are used up`
  return { expires_at, max_visits: maxVisits, archived: true, notes: [note, ...losses] }
}
