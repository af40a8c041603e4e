import * as Type from '../../../../kernel/schema.ts'
import { hardeningNote, processNote } from './hardening.ts'
import { countProcesses } from '../../../../kernel/processes/count.ts'
import { runCommand } from '../../../../kernel/processes/run.ts'
import { redactCut } from '../../redact.ts'
import { Argv, defineCheck, failed, passed, unknown } from './check.ts'

/** How systemctl says that there is no systemd to ask. */
const OFFLINE =
  /not been booted with systemd|Failed to connect to |: Transport endpoint is not connected/i

const WITH_SYSTEMD =
  'run Gatehouse on the host of the units, ' +
  'or name an inventory without this check (OPS_INVENTORY)'

const FAILED_UNITS = ['list-units', '--state=failed', '--plain', '--no-legend', '--no-pager']

/** A systemd unit is active; without a unit, none has failed. */
export const unitCheck = defineCheck('unit', {
  takes: {
    unit: Type.Optional(
      Type.String({
        pattern: '^[A-Za-z0-9:_.\\\\@-]+$',
        description: 'the name of a systemd unit',
      }),
    ),
  },
  level: 'critical',
  nameOf: ({ unit }) => (unit === undefined ? 'units' : `unit ${unit}`),
  async run({ unit }, context) {
    const argv = unit === undefined ? FAILED_UNITS : ['is-active', '--', unit]
    const result = await runCommand(['systemctl', ...argv], context)
    const { code, output, problem, missing } = result
    const text = output.trim()
    const note = hardeningNote(text)
    if (note !== undefined) return unknown(note)
    const [firstLine = ''] = text.split('\n')
    const cause = `systemd can't be asked: ${problem ?? firstLine.replace(/\.$/, '')}`
    if (missing !== null || OFFLINE.test(text)) return unknown(`${cause}; ${WITH_SYSTEMD}`)
    // An incomplete list says nothing about the units that are not on it.
    if (problem !== null || (unit === undefined && code !== 0)) return failed(cause)
    if (unit !== undefined) {
      return code === 0 ? passed(`is ${text}`) : failed(`is ${text || 'not active'}`)
    }
    if (text === '') return passed('no unit has failed')
    const units = text.split('\n').map((line) => line.trim().split(/\s+/)[0])
    return failed(`failed: ${units.join(', ')}`)
  },
})

/** As many processes run as expected. One of `match` and `program` must be given. */
export const processCheck = defineCheck('process', {
  takes: {
    /** Text in its command line. */
    match: Type.Optional(Type.String({ minLength: 1 })),
    /** Name or path of its executable, which its arguments can't fake. */
    program: Type.Optional(Type.String({ minLength: 1 })),
    min: Type.Optional(Type.Integer({ minimum: 0 })),
    max: Type.Optional(Type.Integer({ minimum: 0 })),
  },
  level: 'critical',
  nameOf: ({ match, program }) => ['process', program, match].filter(Boolean).join(' '),
  mistakeOf({ match, program, min = 1, max = Infinity }) {
    // It would pass for any process.
    if (match === undefined && program === undefined) return ['', 'must have match or program']
    return min > max ? ['/max', `must be ${min} or more, as min is`] : undefined
  },
  async run(check) {
    const { match, program, min = 1, max = Infinity } = check
    const count = countProcesses(check)
    const words = [program && `of program "${program}"`, match && `with "${match}"`]
    const wanted = words.filter(Boolean).join(' ')
    // Further ones may be hidden.
    const isKnown = count > max || (count >= min && max === Infinity)
    const note = isKnown ? undefined : processNote()
    if (note !== undefined) return unknown(note)
    if (count === 0 && min > 0) return failed(`no process ${wanted} runs`)
    const found = count === 1 ? `1 process ${wanted} runs` : `${count} processes ${wanted} run`
    if (count < min) return failed(`${found}, expected ${min} or more`)
    if (count > max) return failed(`${found}, expected ${max} at most`)
    if (count === 0) return passed('does not run')
    return passed(count === 1 ? 'runs' : `${count} processes run`)
  },
})

/** A command exits as expected. */
export const commandCheck = defineCheck('command', {
  takes: {
    argv: Argv,
    exit_code: Type.Optional(Type.Integer({ minimum: 0, maximum: 255 })),
    contains: Type.Optional(Type.String()),
  },
  level: 'warning',
  nameOf: ({ argv }) => `command ${argv.join(' ')}`,
  async run({ argv, exit_code = 0, contains }, context) {
    const { code, output, isCut, problem, missing } = await runCommand(argv, context)
    if (missing !== null) {
      return unknown(`${problem}; name a program in the inventory that may be run here`)
    }
    if (problem !== null) return failed(problem)
    // Redact before cutting: half a secret would stay.
    const clean = redactCut(output, isCut, context.redact)
    const lastLine = clean.trim().split('\n').at(-1)?.slice(0, 200)
    if (code !== exit_code) {
      const ended = `ended with ${code}, expected ${exit_code}`
      const note = hardeningNote(clean)
      const message = [ended, lastLine, note].filter(Boolean).join(': ')
      return note === undefined ? failed(message) : unknown(message)
    }
    if (contains !== undefined && !output.includes(contains)) {
      return failed(`ended with ${code} without "${contains}" in its output`)
    }
    return passed(`ended with ${code}`)
  },
})
