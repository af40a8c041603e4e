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
export type Metrics = ReturnType<typeof createMetrics>

export const METRICS_TYPE = 'application/openmetrics-text; version=1.0.0; charset=utf-8'

type Read = () => readonly (readonly [Labels, number])[]

const END = '# EOF\n'

/** From 0.1 ms, as most redirects and statements take less than one. */
const BUCKETS = [
  0.0001,
  0.00025,
  0.0005,
  0.001,
  0.0025,
  0.005,
  0.01,
  0.025,
  0.05,
  0.1,
  0.25,
  0.5,
  1,
  2.5,
  5,
  10,
  Infinity,
]

/** What one series of a histogram has observed. */
interface Observed {
  labels: Labels
  /** By bucket. */
  counts: number[]
  sum: number
}

/**
 * Makes an empty registry. Names carry their unit; counters are rendered with the suffix `_total`.
 * Each series has the `common` labels, too.
 */
export function createMetrics(common: Labels = {}) {
  const families: (() => string)[] = []
  const labelsOf = (labels: Labels) => labelText({ ...common, ...labels })

  return {
    counter(name: string, help: string): Counter {
      const all = new Map<string, { value: number }>()
      families.push(() => {
        const lines = [...all].map(([labels, { value }]) => `${name}_total${labels} ${value}\n`)
        return head(name, 'counter', help) + lines.join('')
      })
      function series(labels: Labels): (by?: number) => void {
        const entry = all.getOrInsertComputed(labelsOf(labels), () => ({ value: 0 }))
        return (by = 1) => {
          entry.value += by
        }
      }
      return { series, add: (labels, by = 1) => series(labels)(by) }
    },

    /** A value that is read when the page is asked for. */
    gauge(name: string, help: string, read: Read) {
      families.push(() => {
        const lines = read().map(([labels, value]) => `${name}${labelsOf(labels)} ${value}\n`)
        return head(name, 'gauge', help) + lines.join('')
      })
    },

    histogram(name: string, help: string): Histogram {
      const all = new Map<string, Observed>()
      families.push(() => {
        const lines = [...all.values()].map((observed) => histogramLines(name, observed))
        return head(name, 'histogram', help) + lines.join('')
      })
      function series(labels: Labels) {
        const entry = all.getOrInsertComputed(labelsOf(labels), () => {
          return { labels: { ...common, ...labels }, counts: BUCKETS.map(() => 0), sum: 0 }
        })
        return (seconds: number) => {
          let bucket = 0
          while (seconds > (BUCKETS[bucket] ?? Infinity)) bucket++
          entry.counts[bucket] = (entry.counts[bucket] ?? 0) + 1
          entry.sum += seconds
        }
      }
      return { series }
    },

    render: (): string => families.map((family) => family()).join('') + END,
  }
}

/** Joins what several registries have rendered: a family's series follow one head. */
export function joinMetrics(texts: readonly string[]): string {
  const families = new Map<string, string>()
  for (const text of texts) {
    for (const family of text.slice(0, -END.length).split(/^(?=# TYPE )/m)) {
      const [type = '', help = '', ...series] = family.split('\n')
      const familyHead = `${type}\n${help}\n`
      families.set(familyHead, (families.get(familyHead) ?? '') + series.join('\n'))
    }
  }
  return [...families].map(([familyHead, series]) => familyHead + series).join('') + END
}

function head(name: string, type: string, help: string) {
  return `# TYPE ${name} ${type}\n# HELP ${name} ${help}\n`
}

function histogramLines(name: string, { labels, counts, sum }: Observed) {
  let text = ''
  let total = 0
  for (const [i, bound] of BUCKETS.entries()) {
    total += counts[i] ?? 0
    const le = bound === Infinity ? '+Inf' : String(bound)
    text += `${name}_bucket${labelText({ ...labels, le })} ${total}\n`
  }
  text += `${name}_count${labelText(labels)} ${total}\n`
  return text + `${name}_sum${labelText(labels)} ${sum}\n`
}

function labelText(labels: Labels) {
  let text = ''
  for (const name in labels)
    text += `${text === '' ? '' : ','}${name}="${escapeLabel(labels[name])}"`
  return text === '' ? '' : `{${text}}`
}

function escapeLabel(value = '') {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
