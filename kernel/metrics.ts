/** Label names and values of one series. */
export type Labels = Readonly<Record<string, string>>

export interface Counter {
  add(labels: Labels, by?: number): void
}

export interface Histogram {
  observe(labels: Labels, seconds: number): void
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

/** Makes an empty registry. Names carry their unit; counters are rendered with the suffix `_total`. */
export function createMetrics(): Metrics {
  const families: (() => string)[] = []

  return {
    counter(name, help) {
      const series = new Map<string, number>()
      families.push(() => {
        const lines = [...series].map(([labels, value]) => `${name}_total${labels} ${value}\n`)
        return head(name, 'counter', help) + lines.join('')
      })
      return {
        add(labels, by = 1) {
          const key = labelText(labels)
          series.set(key, (series.get(key) ?? 0) + by)
        },
      }
    },

    gauge(name, help, read) {
      families.push(() => {
        const lines = read().map(([labels, value]) => `${name}${labelText(labels)} ${value}\n`)
        return head(name, 'gauge', help) + lines.join('')
      })
    },

    histogram(name, help) {
      const series = new Map<string, { labels: Labels; counts: number[]; sum: number }>()
      families.push(() => {
        let text = head(name, 'histogram', help)
        for (const { labels, counts, sum } of series.values()) {
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
        observe(labels, seconds) {
          const key = labelText(labels)
          let entry = series.get(key)
          if (entry === undefined) {
            entry = { labels, counts: BUCKETS.map(() => 0).concat(0), sum: 0 }
            series.set(key, entry)
          }
          const found = BUCKETS.findIndex((bound) => seconds <= bound)
          const bucket = found < 0 ? BUCKETS.length : found
          entry.counts[bucket] = (entry.counts[bucket] ?? 0) + 1
          entry.sum += seconds
        },
      }
    },

    render: () => families.map((family) => family()).join('') + '# EOF\n',
  }
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
