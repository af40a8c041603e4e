import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { runFolder } from './run-folder.ts'

/** What a transcript holds; the file's ending, by which the search for secrets finds it. */
export type TranscriptKind = 'log' | 'http' | 'sse' | 'html'

/**
 * Appends what the product wrote or answered to a file of this run, one per process and kind. At its
 * end the run searches these files for secrets.
 */
export function transcript(
  kind: TranscriptKind,
  content: string | Uint8Array,
  name = 'test',
): void {
  appendFileSync(join(runFolder(), `${name}-${process.pid}.${kind}`), content)
}
