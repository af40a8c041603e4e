/** Label names and values of one series. */
export type Labels = Readonly<Record<string, string>>

export interface Counter {
  add(labels: Labels, by?: number): void
  /** One series, shown from now on: what is counted at each request looks up its labels once. */
  series(labels: Labels): (by?: number) => void
}

export interface Histogram {
  /** One series: gives the function that observes a time. */
  series(labels: Labels): (seconds: number) => void
}

/** One registry a process; renders OpenMetrics text. */
export interface Metrics {
  counter(name: string, help: string): Counter
  histogram(name: string, help: string): Histogram
  /** A value that is read when the page is asked for. */
  gauge(name: string, help: string, read: () => readonly (readonly [Labels, number])[]): void
  render(): string
}

export const METRICS_TYPE = 'application/openmetrics-text; version=1.0.0; charset=utf-8'

const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/**
 * Makes an empty registry. Names carry their unit; counters are rendered with the suffix `_total`.
 */
export function createMetrics(): Metrics {
  const families: (() => string)[] = []

  return {
    counter(name, help) {
      const all = new Map<string, { value: number }>()
      families.push(() => {
        const lines = [...all].map(([labels, { value }]) => `${name}_total${labels} ${value}\n`)
        return head(name, 'counter', help) + lines.join('')
      })
      function series(labels: Labels): (by?: number) => void {
        const entry = entryOf(all, labels, () => ({ value: 0 }))
        return (by = 1) => {
          entry.value += by
        }
      }
      return { series, add: (labels, by = 1) => series(labels)(by) }
    },

    gauge(name, help, read) {
      families.push(() => {
        const lines = read().map(([labels, value]) => `${name}${labelText(labels)} ${value}\n`)
        return head(name, 'gauge', help) + lines.join('')
      })
    },

    histogram(name, help) {
      const all = new Map<string, { labels: Labels; counts: number[]; sum: number }>()
      families.push(() => {
        let text = head(name, 'histogram', help)
        for (const { labels, counts, sum } of all.values()) {
          let total = 0
          for (const [i, count] of counts.entries()) {
            total += count
            const le = i < BUCKETS.length ? String(BUCKETS[i]) : '+Inf'
            text += `${name}_bucket${labelText({ ...labels, le })} ${total}\n`
          }
          text += `${name}_count${labelText(labels)} ${total}\n${name}_sum${labelText(labels)} ${sum}\n`
        }
        return text
      })
      return {
        series(labels) {
          const entry = entryOf(all, labels, () => {
            return { labels, counts: BUCKETS.map(() => 0).concat(0), sum: 0 }
          })
          return (seconds) => {
            const found = BUCKETS.findIndex((bound) => seconds <= bound)
            const bucket = found < 0 ? BUCKETS.length : found
            entry.counts[bucket] = (entry.counts[bucket] ?? 0) + 1
            entry.sum += seconds
          }
        },
      }
    },

    render: () => families.map((family) => family()).join('') + '# EOF\n',
  }
}

function entryOf<T>(all: Map<string, T>, labels: Labels, make: () => T): T {
  const key = labelText(labels)
  const known = all.get(key)
  if (known !== undefined) return known
  const entry = make()
  all.set(key, entry)
  return entry
}

function head(name: string, type: string, help: string): string {
  return `# TYPE ${name} ${type}\n# HELP ${name} ${help}\n`
}

function labelText(labels: Labels): string {
  let text = ''
  for (const name in labels)
    text += `${text === '' ? '' : ','}${name}="${escapeLabel(labels[name])}"`
  return text === '' ? '' : `{${text}}`
}

function escapeLabel(value = ''): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
