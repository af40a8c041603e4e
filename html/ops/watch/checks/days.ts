import { html, type Html } from '../../../../kernel/html.ts'
import type { Bar, Hour } from '../../../../services/ops/watch/checks/history.ts'
import { percentText, uptimeChart } from '../../../chart.ts'
import { countText } from '../../../parts.ts'
import { dayText, instantText } from '../../../times.ts'

/** A bar for each day of a check, the last one today. */
export function dayBar(name: string, { days, up }: Bar): Html {
  const bars = days.map((one) => ({
    label: dayText(one.day.toISOString().slice(0, 10)),
    up: one.up,
  }))
  return uptimeChart(`${name}: ${uptimeOf(up, days, 'day')}`, bars)
}

/** A bar for each of the last 24 hours, this one last. */
export function hourBar(
  name: string,
  hours: readonly Pick<Hour, 'hour' | 'up'>[],
  up: number | null,
): Html {
  const lastDay = hours.slice(-24)
  const bars = lastDay.map(({ hour, up: part }) => ({ label: instantText(hour), up: part }))
  return uptimeChart(`${name}: ${uptimeOf(up, lastDay, 'hour')}`, bars)
}

/** A part in percent; null: it was not run. */
export function uptimeText(part: number | null): string {
  return part === null ? 'not checked' : percentText(part)
}

/** The same, with the time that it is of: from the first hour or day with a run. */
export function uptimeOf(
  part: number | null,
  bars: readonly { readonly up: number | null }[],
  unit: 'hour' | 'day',
): string {
  if (part === null) return uptimeText(part)
  const unwatched = bars.findIndex(({ up }) => up !== null)
  return `${uptimeText(part)} of ${countText(bars.length - Math.max(0, unwatched), unit)}`
}

/** The same for a column whose heading has the time: only a shorter one is named. */
export function uptimeCell(
  part: number | null,
  bars: readonly { readonly up: number | null }[],
  unit: 'hour' | 'day',
): string {
  const isYoung = bars[0]?.up === null && bars.some(({ up }) => up !== null)
  return isYoung ? uptimeOf(part, bars, unit) : uptimeText(part)
}

/** What stands under a bar or a line. */
export function axis(from: string, to: string): Html {
  return html`<p class="muted axis"><span>${from}</span><span>${to}</span></p>`
}
