import { hash } from 'node:crypto'
import type { Redact } from '../../redact.ts'

const MAX_LENGTH = 200

// Parts of times; in a form their punctuation is escaped.
const DAY = '(?:mon|tue|wed|thu|fri|sat|sun)'
const MONTH = '(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)'
const COLON = '(?::|%3A)'
const FRACTION = '(?:[.,]\\d+)?'
const CLOCK = `\\d{2}${COLON}\\d{2}(?:${COLON}\\d{2}${FRACTION})?`
const ZONE = `(?: ?(?:Z|(?:[+-]|%2B)\\d{2}${COLON}?\\d{2}))?`
const TIME_OF_DAY = `(?:[01]?\\d|2[0-3])${COLON}[0-5]\\d(?:${COLON}[0-5]\\d${FRACTION})?`
/** A time of day begins a word, also after an escaped character: not as in `host-1:40`. */
const WORD_START = '(?:(?<![\\w:.-])|(?<=%(?!3A)[\\dA-F]{2}|\\\\[nrt]))'

/** Dates and times in bodies of any kind. */
const TIMES = [
  new RegExp(`\\d{4}-\\d{2}-\\d{2}(?:[T +]|%20)${CLOCK}${ZONE}`, 'gi'),
  new RegExp(`(?:${DAY},? )?\\d{1,2} ${MONTH} \\d{4}(?: \\d{2}:\\d{2}(?::\\d{2})?)?`, 'gi'),
  new RegExp(`\\b(?:${DAY} )?${MONTH} +\\d{1,2} \\d{2}:\\d{2}:\\d{2}`, 'gi'),
  /(?<!\d)\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?!\d)/g,
  new RegExp(`${WORD_START}${TIME_OF_DAY}(?: ?[ap]m|Z)?(?![\\w:])`, 'gi'),
  // Unix time from 2001 to 2065, in seconds to nanoseconds.
  /\b[12]\d{9}(?:\.\d+|(?:\d{3}){1,3})?\b/g,
]

/** A hash of a text without its times: deliveries with the same one have the same text. */
export function contentOf(text: string): string {
  return digest(TIMES.reduce((rest, time) => rest.replaceAll(time, ''), text))
}

/** The sender's key of an alert, in short and without secrets. */
export function fingerprintOf(key: string, redact: Redact): string {
  const text = key.replaceAll('\0', '\u{FFFD}').toWellFormed()
  return redact(text.length <= MAX_LENGTH ? text : digest(text))
}

/** The hash of a text. */
export function digest(text: string): string {
  return `sha256:${hash('sha256', text)}`
}
