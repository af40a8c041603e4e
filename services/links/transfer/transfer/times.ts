import { readInstant } from '../../../../kernel/time.ts'

/** Times before this are unknown: golink writes the year 1 for them. */
const EARLIEST = Date.UTC(1970, 0, 1)

/** A day, perhaps a time of it, perhaps its zone. */
const WRITTEN =
  /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?))? ?(Z|UTC|[+-]\d\d:?\d\d)?$/i

/**
 * A time as other programs write it: by RFC 3339, with a space or without a zone, which is UTC
 * then, or as seconds since 1970. Undefined where the program does not know it.
 */
export function readForeignTime(text: string): Date | 'unreadable' | undefined {
  if (text === '') return undefined
  if (/^\d{9,11}$/.test(text)) return new Date(Number(text) * 1000)
  const [, day = '', time = '00:00:00', zone = 'Z'] = WRITTEN.exec(text) ?? []
  const offset = /^utc$/i.test(zone) ? 'Z' : zone.replace(/^(...)(\d\d)$/, '$1:$2')
  const read = readInstant(`${day}T${time}${offset}`)
  if (read === undefined) return 'unreadable'
  return read.getTime() < EARLIEST ? undefined : read
}
