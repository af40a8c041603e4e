import * as Type from '../../../../kernel/schema.ts'
import { runSideBySide } from '../../watch/checks/slots.ts'
import { runListed, saveResults, STATE_WORDS, storedName } from '../../watch/checks/states.ts'
import { nameOf } from '../../watch/checks/run.ts'
import type { Operation, Service } from '../../watch/inventory/inventory.ts'
import { logName, type Source } from '../../watch/inventory/reads.ts'
import { cooldownOf } from '../operations/operations.ts'
import { MAX_TEXT, Offset } from './lines.ts'
import { defineTool, done, refused, Text } from './tool.ts'

export const listServicesTool = defineTool({
  name: 'list_services',
  description:
    'Lists the services, their checks and logs, the operations that may be run on them, and ' +
    'the sources of metrics and logs. ' +
    'A long list has pages: the last line of a page says how to get the next one.',
  tier: 1,
  effect: 'reads',
  takes: {
    offset: Offset,
  },
  async run({ offset = 0 }, { inventory }) {
    const { services, sources = [] } = await inventory.current()
    const lines = [...services.flatMap(describe), ...sources.map(describeSource)]
    if (lines.length === 0) return done('The inventory has no services.')
    if (offset >= lines.length) {
      return refused(`The list has ${lines.length} lines: offset must be less than that.`)
    }
    return done(pageOf(lines, offset))
  },
})

/** The lines from `offset` on that fit on a page, and how to get the next page. */
function pageOf(lines: ReturnType<typeof describe>, offset: number): string {
  const page: string[] = []
  const [first] = lines.slice(offset)
  if (first?.text.startsWith(' ') === true) page.push(`${first.service} (continued)`)
  let next = offset
  let length = 0
  for (const { text } of lines.slice(offset)) {
    length += text.length + 1
    // Each page has at least one line, however long.
    if (length > MAX_TEXT && next > offset) break
    page.push(text)
    next++
  }
  if (next < lines.length) {
    const call = `call list_services with {"offset": ${next}}`
    page.push(`(lines ${offset + 1} to ${next} of ${lines.length}; for the next page ${call})`)
  }
  return page.join('\n')
}

export const runCheckTool = defineTool({
  name: 'run_check',
  description:
    'Runs one check of a service, or all of them, and tells what it found: ok, warn, FAIL, or ' +
    'unknown. Unknown is not ok: the check could not run, and the message says what to do. ' +
    'The result is stored, with an event when the state changes.',
  tier: 1,
  effect: 'reads',
  takes: {
    service: Text(2_000, 'Name of the service'),
    check: Type.Optional(Text(2_000, 'Name of the check; all of the service without it')),
  },
  async run({ service: wanted, check: only }, context) {
    const { inventory, redact, job } = context
    const { services } = await inventory.current()
    const service = services.find(({ name }) => name === wanted)
    if (service === undefined) return refused(`There is no service "${wanted}".`)
    const checks = service.checks.filter((check) => only === undefined || nameOf(check) === only)
    if (checks.length === 0) {
      const missing = only === undefined ? 'no checks' : `no check "${only}"`
      return refused(`Service "${wanted}" has ${missing}.`)
    }
    const listed = checks.map((check) => ({
      service: wanted,
      name: storedName(check, redact),
      called: nameOf(check),
      check,
    }))
    const results = await runSideBySide(listed, async (one) => ({
      ...(await runListed(context, one, job)),
      ...one,
    }))
    await saveResults(context, results)
    const lines = results.map(({ state, called, message, ms, check }) => {
      const runbook = state === 'ok' ? undefined : (check.runbook ?? service.runbook)
      return `${STATE_WORDS[state]} ${called}: ${message} (${ms} ms)${runbookNote(runbook)}`
    })
    return done(lines.join('\n'))
  },
})

function describeOperation(operation: Operation): string {
  const { name, action_type, approval } = operation
  const { count, window_s } = cooldownOf(operation)
  const limit = `${count} within ${window_s} s`
  const person = approval === true ? ', after a person has approved it' : ''
  return `operation "${name}": ${action_type}, ${limit}${person}`
}

function runbookNote(runbook: string | undefined): string {
  return runbook === undefined ? '' : ` (runbook "${runbook}")`
}

function describeSource({ name, type, description }: Source) {
  const about = description === undefined ? '' : `: ${description}`
  return { service: name, text: `source "${name}" (${type})${about}` }
}

/** The lines of a service in the list; those of its parts are indented. */
function describe({ name, description, runbook, checks, operations = [], logs = [] }: Service) {
  const about = description === undefined ? '' : `: ${description}`
  const head = `${name}${about}${runbookNote(runbook)}`
  const details = [
    ...checks.map((check) => `  check "${nameOf(check)}"${runbookNote(check.runbook)}`),
    ...logs.map((log) => `  log "${logName(log)}"`),
    ...operations.map((operation) => `  ${describeOperation(operation)}`),
  ]
  return [head, ...details].map((text) => ({ service: name, text }))
}
