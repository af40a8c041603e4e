import { fstatSync } from 'node:fs'

/**
 * Whether systemd's journal reads what is written to a file descriptor: `JOURNAL_STREAM` names the device
 * and the inode that it was given, and a child may have been given another one (systemd.exec(5)).
 */
export function isJournal(descriptor: number): boolean {
  const stream = process.env['JOURNAL_STREAM']
  if (stream === undefined) return false
  try {
    const { dev, ino } = fstatSync(descriptor, { bigint: true })
    return stream === `${dev}:${ino}`
  } catch {
    return false
  }
}
