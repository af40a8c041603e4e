import { html, type Html } from '../../../kernel/html.ts'
import type { Bar, Hour } from '../../../services/ops/checks/history.ts'
import { percentText, uptimeChart } from '../../chart.ts'
import { dayText, instantText } from '../../times.ts'

/** A bar for each day of a check, the last one today. */
export function dayBar(name: string, { days, up }: Bar): Html {
  const bars = days.map((one) => ({
    label: dayText(one.day.toISOString().slice(0, 10)),
    up: one.up,
  }))
  return uptimeChart(`${name}: ${uptimeText(up)} in ${days.length} days`, bars)
}

/** A bar for each of the last 24 hours, this one last. */
export function hourBar(name: string, hours: readonly Hour[], up: number | null): Html {
  const bars = hours.slice(-24).map(({ hour, up: part }) => ({
    label: instantText(hour),
    up: part,
  }))
  return uptimeChart(`${name}: ${uptimeText(up)} in 24 hours`, bars)
}

/** A part in percent; null: it was not run. */
export function uptimeText(part: number | null): string {
  return part === null ? 'not checked' : percentText(part)
}

/** What stands under a bar or a line. */
export function axis(from: string, to: string): Html {
  return html`<p class="muted axis"><span>${from}</span><span>${to}</span></p>`
}
