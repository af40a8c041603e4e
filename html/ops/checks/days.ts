import { html, type Html } from '../../../kernel/html.ts'
import type { Bar } from '../../../services/ops/checks/history.ts'
import { percentText, uptimeChart } from '../../chart.ts'

/** A bar for each day of a check, the last one today. */
export function dayBar(name: string, { days, up }: Bar): Html {
  return uptimeChart(`${name}: ${uptimeText(up)} in ${days.length} days`, days)
}

/** The same in a row of a list, below the part that was up. */
export function dayCell(name: string, bar: Bar): Html {
  return html`${uptimeText(bar.up)} ${dayBar(name, bar)}`
}

/** A part in percent; null: it was not run. */
export function uptimeText(part: number | null): string {
  return part === null ? 'not checked' : percentText(part)
}

/** What stands under a bar or a line. */
export function axis(from: string, to: string): Html {
  return html`<p class="muted axis"><span>${from}</span><span>${to}</span></p>`
}
