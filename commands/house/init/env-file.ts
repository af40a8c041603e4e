import { chmodSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { parseEnv } from 'node:util'

/** The settings of an environment file, by name. */
export type Settings = Readonly<Record<string, string>>

/** Mode of a file that may have secrets. */
const PRIVATE = 0o600

const HEAD =
  '# Settings of Gatehouse, made by gatehouse init. gatehouse help settings has all of them.\n'

/** The settings that a file has, without those that are empty; none where there is no file. */
export function readSettings(file: string): Settings {
  if (!existsSync(file)) return {}
  const entries = Object.entries(parseEnv(readFileSync(file, 'utf8')))
  const named = entries.map(([name, text = '']) => [name, text] as const)
  return Object.fromEntries(named.filter(([, text]) => text !== ''))
}

/** Writes an environment file. A server that follows it never sees half of it. */
export function writeSettings(file: string, settings: Settings, mode = PRIVATE): void {
  const lines = Object.entries(settings).map(([name, text]) => `${name}=${quoted(name, text)}\n`)
  writeText(file, HEAD + lines.join(''), mode)
}

/** Puts a file of this mode, whatever the mask, in the place of one that is there. */
export function writeText(file: string, text: string, mode: number): void {
  const written = `${file}.new`
  rmSync(written, { force: true })
  writeFileSync(written, text, { mode: PRIVATE, flag: 'wx' })
  chmodSync(written, mode)
  renameSync(written, file)
}

/** A value as `parseEnv` reads it back. Unquoted, a `#` would begin a comment. */
function quoted(name: string, text: string) {
  if (/^[\w@%+:,./=-]*$/.test(text)) return text
  const quote = [`'`, '`'].find((mark) => !text.includes(mark))
  if (quote === undefined || text.includes('\n')) {
    throw new Error(
      `${name} has a line break, or both ' and \`, which no environment file can have`,
    )
  }
  return quote + text + quote
}
