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
 * whole height; `label`
 * says the whole to people who don't see it. A bar of nothing keeps a line, so that the scale
 * shows.
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
