import { escapeControls } from '../../../../kernel/text.ts'
import {
  isList,
  isObject,
  memberAt,
  objectOf,
  objectsOf,
  stringOf,
  type JsonObject,
} from '../../../../kernel/json.ts'
import { firstWithin, MAX_TEXT } from './lines.ts'
import { redactLine, type Redact } from '../../redact.ts'

// What Prometheus and Loki answer, as a model gets it: series of both, and lines of Loki.

/** Series that are asked for and read; fewer are shown where their labels are long. */
export const MAX_SERIES = 200
/** Points of a series. */
const MAX_POINTS = 60
/** Characters of the labels of a series, and of a value. */
const MAX_LABELS = 500
const MAX_VALUE = 60
/** Characters of a line, and of a warning. */
const MAX_LINE = 2_000
const MAX_WARNING = 500
const MIN_STEP_S = 15
const DAY_MINUTES = 24 * 60

/** A range of time and its steps, so that a series has no more points than an answer shows. */
export type Range = ReturnType<typeof rangeOf>

/** The last minutes before a time, in seconds. */
export function rangeOf(now: Date, minutes: number) {
  const end = Math.floor(now.getTime() / 1_000)
  const seconds = minutes * 60
  const step = Math.max(MIN_STEP_S, Math.ceil(seconds / MAX_POINTS))
  return { start: end - seconds, end, step, isLong: minutes > DAY_MINUTES }
}

/** The result of a query: `vector`, `matrix`, `scalar` or `string`. */
export function describeResult(data: unknown, range: Range | undefined, redact: Redact): string {
  const { resultType, result } = objectOf(data)
  if (resultType === 'scalar' || resultType === 'string') {
    return describePoint(result, redact, timeText)
  }
  const series = objectsOf(result)
  if (series.length === 0) return 'No series.'
  const first = series.slice(0, MAX_SERIES)
  const texts = first.map((one) => describeSeries(one, range, redact))
  const shown = firstWithin(texts, MAX_TEXT)
  const left = series.length - shown.length
  const head = `${series.length} series${range === undefined ? '' : describeRange(range)}:`
  const more = left === 0 ? [] : [`(${left} more are left out: narrow the query, as by topk)`]
  return [head, ...shown, ...more].join('\n')
}

function describeRange({ start, end, step }: Range): string {
  return ` from ${timeText(start)} to ${timeText(end)}, a point every ${step} s`
}

function describeSeries(series: unknown, range: Range | undefined, redact: Redact): string {
  const labels = describeLabels(memberAt(series, 'metric'), redact)
  const { value, values, histogram, histograms } = objectOf(series)
  const single = value ?? histogram
  if (single !== undefined) return `${labels} ${describePoint(single, redact, timeText)}`
  const points = values ?? histograms
  const list = isList(points) ? points.slice(-MAX_POINTS - 1) : []
  const shortTime = (seconds: number): string => {
    const text = timeText(seconds)
    return range?.isLong === true ? text.slice(5, 16) : text.slice(11, 19)
  }
  const shown = list.map((point) => describePoint(point, redact, shortTime))
  return `${labels}\n  ${shown.join(', ')}`
}

/** Labels as a query has them, with what could hide in a value escaped. */
function describeLabels(labels: unknown, redact: Redact): string {
  const { __name__: name = '', ...others } = objectOf(labels)
  const pairs = Object.entries(others).map(([label, value]) => {
    return `${label}=${JSON.stringify(String(value))}`
  })
  const text = `${typeof name === 'string' ? name : ''}{${pairs.join(', ')}}`
  return escapeControls(redactLine(text, MAX_LABELS, redact))
}

/** A time in seconds and the value, which is a text, or an object for a histogram. */
function describePoint(
  point: unknown,
  redact: Redact,
  toTime: (seconds: number) => string,
): string {
  const [seconds, value] = isList(point) ? point : []
  const { count, sum } = objectOf(value)
  const text = isObject(value) ? `count ${count} sum ${sum}` : String(value)
  return `${toTime(Number(seconds))} ${redactLine(text, MAX_VALUE, redact)}`
}

function timeText(seconds: number): string {
  const time = new Date(seconds * 1_000)
  return Number.isNaN(time.getTime()) ? 'at no time' : `${time.toISOString().slice(0, 19)}Z`
}

/** The newest lines of all streams, oldest first, each with its time and labels. */
export function newestLines(
  streams: readonly JsonObject[],
  most: number,
  redact: Redact,
): readonly string[] {
  const entries = streams.flatMap(({ stream, values }) => {
    const list = isList(values) ? values.filter(isList) : []
    return list.map(([at, line]) => ({ stream, time: Number(at), line }))
  })
  const newest = entries.toSorted((a, b) => a.time - b.time).slice(-most)
  return newest.map(({ stream, time, line }) => {
    const text = redactLine(stringOf(line) ?? '', MAX_LINE, redact)
    return `${lineTime(time)} ${describeLabels(stream, redact)} ${text}`
  })
}

/** A time in nanoseconds as people write it. */
function lineTime(nanoseconds: number): string {
  const time = new Date(nanoseconds / 1e6)
  return Number.isNaN(time.getTime()) ? 'at no time' : time.toISOString()
}

/** What a source says about an answer, on lines of its own. */
export function describeWarnings({ warnings }: JsonObject, redact: Redact): string {
  const texts = isList(warnings) ? warnings.slice(0, 3).map(String) : []
  return texts.map((text) => `\n(warning: ${redactLine(text, MAX_WARNING, redact)})`).join('')
}
