import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import Type from 'typebox'
import { messageOf } from '../../../kernel/log.ts'
import { Path, unknown, type Finding } from './check.ts'

const DAY_MS = 86_400_000

/** How many days a certificate must still be valid. */
export const Days = Type.Integer({ minimum: 0 })
/** A PEM file of the authorities that are trusted instead of the system's. */
export const CaFile = Path

/** How many days a certificate is still valid, by the text of its end. */
export function daysLeft({ valid_to }: { valid_to: string }): number {
  return (Date.parse(valid_to) - Date.now()) / DAY_MS
}

/** The authorities of a file; a finding if it has none, because OpenSSL would say nothing. */
export async function trustOf(ca: string | undefined): Promise<{ ca?: string } | Finding> {
  if (ca === undefined) return {}
  try {
    const pem = await readFile(ca, 'utf8')
    void new X509Certificate(pem)
    return { ca: pem }
  } catch (error) {
    const problem = messageOf(error)
    return unknown(`the authorities of ${ca} can't be read: ${problem}; name a PEM file as ca`)
  }
}
