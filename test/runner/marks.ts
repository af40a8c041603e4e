/** What a file took: processor time is its own and that of the processes that it waited for. */
export type FileCost = { milliseconds: number; cpuSeconds: number }

const BEGIN = /^# file begins: (.+)$/
const END = /^# file ends: (\d+) ms, CPU ([\d.]+) s$/

/** The comment before a file's tests. */
export function beginLine(file: string) {
  return `file begins: ${file}`
}

/** The comment behind them. */
export function endLine({ milliseconds, cpuSeconds }: FileCost) {
  return `file ends: ${milliseconds.toFixed(0)} ms, CPU ${cpuSeconds.toFixed(2)} s`
}

/** The file that begins with this line of TAP. */
export function fileBegun(line: string) {
  return BEGIN.exec(line)?.[1]
}

/** What the file that ends with this line of TAP took. */
export function fileEnded(line: string) {
  const [, milliseconds, cpuSeconds] = END.exec(line) ?? []
  if (milliseconds === undefined) return undefined
  return { milliseconds: Number(milliseconds), cpuSeconds: Number(cpuSeconds) }
}
