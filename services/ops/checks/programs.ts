import type { Static } from 'typebox'
import { OUTPUT_BYTES, runCommand } from '../processes/run.ts'
import { countProcesses } from '../processes/proc.ts'
import { hardeningNote, processNote } from '../hardening.ts'
import { redactCut } from '../redact.ts'
import type { CommandCheck, ProcessCheck, UnitCheck } from '../inventory/schema.ts'
import type { CheckContext, Finding } from './finding.ts'

const OFFLINE =
  /not been booted with systemd|connect to .*bus|: Transport endpoint is not connected/i

/** A systemd unit is active; without one, no unit has failed. */
export async function unitCheck(
  { unit }: Static<typeof UnitCheck>,
  context: CheckContext,
): Promise<Finding> {
  const argv =
    unit === undefined
      ? ['systemctl', 'list-units', '--state=failed', '--plain', '--no-legend', '--no-pager']
      : ['systemctl', 'is-active', '--', unit]
  const { code, output, problem, missing } = await runCommand(argv, context)
  const text = output.trim()
  const offline = missing !== null || OFFLINE.test(text)
  const note = hardeningNote(text)
  if (note !== undefined) return { ok: unit === undefined, message: `not looked at: ${note}` }
  if (offline && unit === undefined) return { ok: true, message: 'no systemd here to ask' }
  // A list that is not whole says nothing of the units that are not on it.
  if (offline || problem !== null || (unit === undefined && code !== 0)) {
    return { ok: false, message: `systemd can't be asked: ${problem ?? text}` }
  }
  if (unit !== undefined) return { ok: code === 0, message: `is ${text || 'unknown'}` }
  const failed = text === '' ? [] : text.split('\n').map((line) => line.trim().split(/\s+/)[0])
  if (failed.length === 0) return { ok: true, message: 'no unit has failed' }
  return { ok: false, message: `failed: ${failed.join(', ')}` }
}

/** A process runs that has a text in its command line, and a program as its executable. */
export async function processCheck(check: Static<typeof ProcessCheck>): Promise<Finding> {
  const { match, program } = check
  const count = countProcesses(check)
  const wanted = [
    ...(program === undefined ? [] : [`of program "${program}"`]),
    ...(match === undefined ? [] : [`with "${match}"`]),
  ].join(' ')
  const note = count === 0 ? processNote() : undefined
  if (note !== undefined) return { ok: false, message: `no process ${wanted} is seen: ${note}` }
  if (count === 0) return { ok: false, message: `no process ${wanted} runs` }
  return { ok: true, message: count === 1 ? 'runs' : `${count} processes run` }
}

/** A command ends as expected. */
export async function commandCheck(
  { argv, exit_code = 0, contains }: Static<typeof CommandCheck>,
  context: CheckContext,
): Promise<Finding> {
  const { code, output, problem } = await runCommand(argv, context)
  if (problem !== null) return { ok: false, message: problem }
  // Before it is cut: half a secret would stay.
  const clean = redactCut(output, Buffer.byteLength(output) >= OUTPUT_BYTES, context.redact)
  const said = clean.trim().split('\n').at(-1)?.slice(0, 200) ?? ''
  if (code !== exit_code) {
    const words = [said, hardeningNote(clean)].filter((text) => text).map((text) => `: ${text}`)
    return { ok: false, message: `ended with ${code}, expected ${exit_code}${words.join('')}` }
  }
  if (contains !== undefined && !output.includes(contains)) {
    return { ok: false, message: `ended with ${code} without "${contains}" in its output` }
  }
  return { ok: true, message: `ended with ${code}` }
}
