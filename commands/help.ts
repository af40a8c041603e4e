import { command, text, UsageError, type Command, type Flags, value } from './command.ts'
import { table } from './output.ts'
import { isValue } from './parse.ts'
import { flagOf, variableOf, VARIABLE_NAMES } from './configuration.ts'
import { oneOf } from '../kernel/variables.ts'

const CONFIGURATION =
  'Configuration (flag over environment file over environment over default; ' +
  '--env-file FILE or GATEHOUSE_ENV_FILE names the file, which is re-read when it changes):'
const WIDTH = 96

export const commands = [
  command({
    name: 'help',
    summary: 'explain all commands and variables, or one command; --help after it does the same',
    args: {
      command: {
        ...text('[COMMAND]', 'the words of a command, such as provider add'),
        repeated: true,
      },
    },
    flags: { man: { summary: 'print a man page: gatehouse help --man | man -l -' } },
    needs: 'nothing',
    async run({ args, flags }, { table: commandTable, version, output }) {
      const all = await commandTable.all()
      const name = args.command.join(' ')
      const rows = all.filter((row) => name === '' || `${row.name} `.startsWith(`${name} `))
      if (rows.length === 0) throw new UsageError(`There is no command "${name}"`)
      if (flags.man) output.data(manPage(all, version))
      else output.out(name === '' ? helpText(all) : usageText(rows))
    },
  }),
  command({
    name: 'completion',
    summary: 'print what completes commands and flags: source <(gatehouse completion bash)',
    args: { shell: value('bash|zsh|fish', 'the shell', oneOf('bash', 'zsh', 'fish')) },
    needs: 'nothing',
    async run({ args: { shell } }, { table: commandTable, output }) {
      const rows = await commandTable.all()
      if (shell === 'fish') output.data(fishScript(rows))
      // zsh runs functions that are written for bash.
      else output.data((shell === 'zsh' ? ZSH_START : '') + bashScript(rows))
    },
  }),
]

/** How a command is called, with all of its arguments and flags. */
function usageLine({ name, args = {}, flags = {}, passes }: Command) {
  const words = Object.values(args).map(({ shown }) => shown)
  const optional = Object.entries(flags).map((named) => `[${shownFlag(named)}]`)
  if (passes !== undefined) optional.push(`[${passes.shown}]`)
  return ['gatehouse', name, ...words, ...optional].join(' ')
}

/** Help on some commands: usage, and what each argument and flag means. */
export function usageText(rows: readonly Command[]): string {
  return rows.map(usageOf).join('\n\n')
}

function usageOf(row: Command) {
  const parts = partsOf(row)
  const width = Math.max(0, ...parts.map(([part]) => part.length))
  const lines = parts.map(([part, summary]) => `  ${part.padEnd(width)}  ${summary}`)
  return [...wrapped(usageLine(row)), `  ${row.summary}`, ...lines].join('\n')
}

/**
 * The text of `gatehouse help`: commands, then every variable with its flag, default and meaning.
 */
function helpText(rows: readonly Command[]) {
  const usage = rows.flatMap((row) => [
    ...wrapped(usageLine(row)).map((line) => `  ${line}`),
    `      ${row.summary}`,
  ])
  const head = ['VARIABLE', 'FLAG', 'DEFAULT', 'ACCEPTED']
  return [
    'Gatehouse: webhooks, go/links and an operations agent in one program.',
    '',
    'Commands (COMMAND --help says more of one):',
    ...usage,
    '',
    ...wrapped(CONFIGURATION),
    ...table(head, variables()).map((line) => `  ${line}`),
    '',
  ].join('\n')
}

/** Arguments and flags of a command, each with its meaning. */
function partsOf({ args = {}, flags = {}, passes }: Command) {
  const parts = Object.values(args).map(({ shown, summary }) => [shown, summary] as const)
  for (const named of Object.entries(flags)) {
    const [, { summary }] = named
    parts.push([shownFlag(named), summary])
  }
  if (passes !== undefined) parts.push([passes.shown, passes.summary])
  return parts
}

/** A flag with what stands for its value. */
function shownFlag([name, flag]: readonly [string, Flags[string]]) {
  return isValue(flag) ? `--${name} ${flag.shown}` : `--${name}`
}

/** Variable, flag, default and accepted form of every variable. */
function variables() {
  return VARIABLE_NAMES.map((name) => {
    const { form, default: fallback = '' } = variableOf(name)
    const flag = flagOf(name)
    const shown = flag === undefined ? '(no flag)' : `--${flag}`
    return [name, shown, fallback, form] as const
  })
}

/** A text in lines of the terminal's width; the lines after the first are indented. */
function wrapped(text: string): readonly string[] {
  const lines: string[] = []
  // A flag and its value stay together.
  for (const word of text.match(/\[[^\]]*\]|\S+/g) ?? []) {
    const line = lines.at(-1)
    if (line !== undefined && line.length + word.length < WIDTH) {
      lines[lines.length - 1] = `${line} ${word}`
    } else lines.push(lines.length === 0 ? word : `    ${word}`)
  }
  return lines
}

/** The man page gatehouse(1) in troff, made of the same table. */
function manPage(rows: readonly Command[], version: string) {
  const commandLines = rows.flatMap((row) => [
    '.SS',
    roff(usageLine(row)),
    '.PP',
    roff(row.summary),
    ...partsOf(row).flatMap(([part, summary]) => ['.TP', roff(part), roff(summary)]),
  ])
  const variableLines = variables().flatMap(([name, flag, fallback, form]) => [
    '.TP',
    roff(`${name}, ${flag}`),
    roff(fallback === '' ? form : `${form}; default ${fallback}`),
  ])
  return [
    `.TH GATEHOUSE 1 "" "gatehouse ${version}"`,
    '.SH NAME',
    roff('gatehouse - webhooks, go/links and an operations agent in one program'),
    '.SH COMMANDS',
    ...commandLines,
    '.SH ENVIRONMENT',
    roff(CONFIGURATION),
    ...variableLines,
    '.SH EXIT STATUS',
    '0 done, 1 failed, 2 wrong usage.',
  ].join('\n')
}

/** A line of text as troff reads it: a leading dot or quote would be a request. */
function roff(text: string) {
  return text.replaceAll('\\', '\\e').replaceAll('-', '\\-').replace(/^[.']/, '\\&$&')
}

const ZSH_START = 'autoload -U +X compinit bashcompinit && compinit && bashcompinit\n'

/** What may follow the words of each command; an empty name stands for the beginning. */
function wordsAfter(rows: readonly Command[]) {
  const after = new Map<string, readonly string[]>()
  function add(name: string, words: readonly string[]) {
    const known = after.get(name) ?? []
    after.set(name, [...new Set([...known, ...words])])
  }
  for (const { name, args = {}, flags = {} } of rows) {
    const [first = '', action] = name.split(' ')
    add('', [first])
    if (action !== undefined) add(first, [action])
    // Of the arguments only fixed words, as in `[hooks] [links]` or `user|admin`.
    for (const { shown } of Object.values(args)) add(name, shown.match(/\b[a-z]+\b/g) ?? [])
    for (const flag of Object.keys(flags)) add(name, [`--${flag}`])
    add(name, ['--help'])
  }
  return after
}

function bashScript(rows: readonly Command[]) {
  const after = wordsAfter(rows)
  const cases = [...after]
    .filter(([name]) => name !== '')
    // Two words before one: the first pattern that matches counts.
    .toSorted(([one], [other]) => other.split(' ').length - one.split(' ').length)
    .map(([name, words]) => `    '${name} '*) words='${words.join(' ')}' ;;`)
  return [
    '_gatehouse() {',
    `  local words before="\${COMP_WORDS[*]:1:COMP_CWORD-1} "`,
    '  case "$before" in',
    ...cases,
    `    ' ') words='${after.get('')?.join(' ')}' ;;`,
    '  esac',
    `  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))`,
    '}',
    // Where no word fits, file names.
    'complete -o default -F _gatehouse gatehouse',
  ].join('\n')
}

function fishScript(rows: readonly Command[]) {
  const lines = [...wordsAfter(rows)].map(([name, words]) => {
    const given = `gatehouse ${name}`.trimEnd()
    const isGroup = rows.some((row) => row.name.startsWith(`${name} `))
    // A group is complete with its action; flags may come anywhere after it.
    const condition =
      name === '' || isGroup
        ? `test (string join ' ' (commandline -opc)) = '${given}'`
        : `string match -q -- '${given} *' (string join ' ' (commandline -opc))' '`
    return `complete -c gatehouse -n "${condition}" -a '${words.join(' ')}'`
  })
  return lines.join('\n')
}
