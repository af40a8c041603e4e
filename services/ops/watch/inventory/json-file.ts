import { readFile, stat } from 'node:fs/promises'
import { messageOf, type Log } from '../../../../kernel/log.ts'

/** A kind of JSON file that operators write. */
export interface FileKind<T> {
  /** Its name in messages, such as `Inventory`. */
  what: string
  /**
   * Validates its value. Throws a SyntaxError that continues the line after the file's name: `is
   * wrong: …`.
   */
  read: (value: unknown) => T
}

/** Reads such a file. Throws an Error of one line that names the file. */
export async function readJsonFile<T>({ what, read }: FileKind<T>, place: string): Promise<T> {
  const text = await readFile(place, 'utf8').catch((error: unknown) => {
    throw new Error(`${what} ${place} can't be read: ${messageOf(error)}`, { cause: error })
  })
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new SyntaxError(`${what} ${place} is no JSON: ${messageOf(error)}`, { cause: error })
  }
  try {
    return read(value)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    throw new SyntaxError(`${what} ${place} ${error.message}`, { cause: error })
  }
}

/**
 * Follows such a file. The function given reads it again if it has changed, and gives undefined
 * without a file. Throws if the file is wrong at the start; later that is logged, and the former
 * content stays.
 */
export async function followJsonFile<T>(
  kind: FileKind<T>,
  file: () => string | undefined,
  log: Log,
): Promise<() => Promise<T | undefined>> {
  let known: { place: string; changed: number; content: T } | undefined
  let refused = ''

  async function current(): Promise<T | undefined> {
    const place = file()
    if (place === undefined) return undefined
    try {
      // Before reading: a change meanwhile is then noticed next time.
      const changed = (await stat(place).catch(() => undefined))?.mtimeMs ?? 0
      if (known?.place !== place || known.changed !== changed) {
        known = { place, changed, content: await readJsonFile(kind, place) }
      }
      refused = ''
    } catch (error) {
      if (known === undefined) throw error
      const problem = messageOf(error)
      if (problem !== refused) log.warn('file not re-read; its former content stays', { problem })
      refused = problem
    }
    return known.content
  }

  await current()
  return current
}
