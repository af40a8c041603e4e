import { html, type Html } from '../kernel/html.ts'
import { attributes } from './parts.ts'

const STEP = 10
const DEFAULT_HEIGHT = 40

/** A bar: what it stands for, such as an hour or a day, and its parts from the ground up. */
export interface Bar {
  label: string
  /** Its hover text, where label and total are not enough. */
  title?: string
  parts: readonly { kind: string; value: number }[]
}

/**
 * Bars beside each other, in the order given. Each has its label and total as hover text over its
 * whole height; `label` says the whole to people who don't see it. An empty bar is a line, so that
 * the scale shows.
 */
export function barChart(
  label: string,
  bars: readonly Bar[],
  {
    height = DEFAULT_HEIGHT,
    kind = '',
    text = String,
  }: { height?: number; kind?: string; text?: (value: number) => string } = {},
): Html {
  const peak = Math.max(1e-9, ...bars.map(totalOf))
  return html`<svg
    class="chart ${kind}"
    viewBox="0 0 ${bars.length * STEP} ${height}"
    preserveAspectRatio="none"
    role="img"
    aria-label="${label}"
  >
    ${bars.map(
      (bar, at) =>
        html`<g>
          <title>${bar.title ?? `${bar.label}: ${text(totalOf(bar))}`}</title>
          ${rectangles(bar, at * STEP + 1, peak, height)}
          <rect class="hit" x="${at * STEP}" y="0" width="${STEP}" height="${height}"></rect>
        </g>`,
    )}
  </svg>`
}

/** The sum of a bar's parts. */
function totalOf({ parts }: Bar): number {
  return parts.reduce((sum, { value }) => sum + value, 0)
}

function rectangles({ parts }: Bar, x: number, peak: number, height: number): readonly Html[] {
  const shown = parts.filter(({ value }) => value > 0)
  if (shown.length === 0) return [rectangle('none', x, height - 1, 1)]
  let top = height
  return shown.map(({ kind, value }) => {
    // Each part is at least 3 high, so that a small one shows beside a large one.
    const own = Math.max(3, (value / peak) * (height - 3 * (shown.length - 1)))
    top -= own
    return rectangle(kind, x, top, own)
  })
}

function rectangle(kind: string, x: number, y: number, height: number): Html {
  const box = {
    class: kind,
    x,
    y: Number(y.toFixed(1)),
    width: STEP - 2,
    height: Number(height.toFixed(1)),
  }
  return html`<rect${attributes(box)}></rect>`
}

/** A day or an hour: the part of its runs that did not fail; null without any. */
interface UptimeSpan {
  label: string
  up: number | null
}

const UPTIME_HEIGHT = 28

/** A bar for each day or hour, in the order given: what failed stands on what did not. */
export function uptimeChart(label: string, spans: readonly UptimeSpan[]): Html {
  const bars = spans.map(({ label: span, up }): Bar => {
    if (up === null) return { label: span, title: `${span}: not checked`, parts: [] }
    const parts = [
      { kind: 'up', value: up },
      { kind: 'down', value: 1 - up },
    ]
    return { label: span, title: `${span}: ${percentText(up)} up`, parts }
  })
  return barChart(label, bars, { kind: 'uptime', height: UPTIME_HEIGHT })
}

/** A part in percent; only the whole is 100 %. */
export function percentText(part: number): string {
  return part === 1 ? '100 %' : `${Math.min(99.99, part * 100).toFixed(2)} %`
}

/** A point of a line: what it stands for, its hover text, and its value, if there is one. */
interface Point {
  title: string
  value: number | null
}

const LINE_HEIGHT = 60

/** A single place becomes a short line, which can be seen. */
function withLength(line: string): string {
  const [x = '', y = '', more] = line.split(/[, ]/)
  if (x === '' || more !== undefined) return line
  return `${Number(x) - STEP / 2},${y} ${Number(x) + STEP / 2},${y}`
}

/**
 * A line through values, in the order given, with a gap where there is none. Each has its title as
 * hover text over its whole height; `label` says the whole to people who don't see it.
 */
export function lineChart(label: string, points: readonly Point[]): Html {
  const peak = Math.max(1, ...points.map(({ value }) => value ?? 0))
  const place = (value: number, at: number) => {
    const y = LINE_HEIGHT - 2 - (value / peak) * (LINE_HEIGHT - 4)
    return `${at * STEP + STEP / 2},${y.toFixed(1)}`
  }
  const places = points.map(({ value }, at) => (value === null ? '' : place(value, at)))
  // A point without a value leaves two spaces or more, which end a line.
  const lines = places.join(' ').trim().split(/ {2,}/).map(withLength)
  return html`<svg
    class="chart line"
    viewBox="0 0 ${points.length * STEP} ${LINE_HEIGHT}"
    preserveAspectRatio="none"
    role="img"
    aria-label="${label}"
  >
    ${lines.map((line) => html`<polyline points="${line}"></polyline>`)}
    ${points.map(
      ({ title }, at) =>
        html`<g>
          <title>${title}</title>
          <rect class="hit" x="${at * STEP}" y="0" width="${STEP}" height="${LINE_HEIGHT}"></rect>
        </g>`,
    )}
  </svg>`
}

const SPARK_HEIGHT = 16

/** A line through a few numbers, as high as a line of text. `label` is its name and hover text. */
export function sparkline(label: string, values: readonly number[]): Html {
  const peak = Math.max(1, ...values)
  const points = values.map((value, at) => {
    return `${at * 2},${Math.round(SPARK_HEIGHT - 1 - (value / peak) * (SPARK_HEIGHT - 2))}`
  })
  const width = (values.length - 1) * 2
  return html`<svg
    class="spark"
    viewBox="0 0 ${width} ${SPARK_HEIGHT}"
    preserveAspectRatio="none"
    role="img"
    aria-label="${label}"
  >
    <title>${label}</title>
    <polyline points="${points.join(' ')}"></polyline>
  </svg>`
}
