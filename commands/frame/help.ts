import { oneOf } from '../../kernel/variables.ts'
import { command, text, UsageError, type Command, value } from './command.ts'
import { commandsPage, settingsPage } from './man-pages.ts'
import { table } from './output.ts'
import { CONFIGURATION, settings, usageLine, usageText, wrapped } from './usage.ts'

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
    flags: {
      man: { summary: 'print the man page gatehouse(1): gatehouse help --man | man -l -' },
      'man-settings': { summary: 'print the man page gatehouse.conf(5)' },
    },
    needs: 'nothing',
    async run({ args, flags }, { table: commandTable, version, output }) {
      const all = await commandTable.all()
      const name = args.command.join(' ')
      const rows = all.filter((row) => name === '' || `${row.name} `.startsWith(`${name} `))
      if (rows.length === 0) throw new UsageError(`There is no command "${name}"`)
      if (flags.man) output.data(commandsPage(all, version))
      else if (flags['man-settings']) output.data(settingsPage(version))
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
      const scripts = { bash: bashScript, zsh: zshScript, fish: fishScript }
      output.data(scripts[shell](rows))
    },
  }),
]

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
    ...table(head, settings()).map((line) => `  ${line}`),
    '',
  ].join('\n')
}

/**
 * A file in a folder of completions (`#compdef`), and a text to read in. zsh runs functions that
 * are written for bash.
 */
function zshScript(rows: readonly Command[]) {
  return [
    '#compdef gatehouse',
    '(( $+functions[compdef] )) || { autoload -U compinit && compinit }',
    'autoload -U +X bashcompinit && bashcompinit',
    bashScript(rows),
    // zsh reads the file at the first completion, and waits for its words.
    '[[ $funcstack[1] != _gatehouse ]] || _bash_complete -o default -F _gatehouse',
  ].join('\n')
}

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
    // zsh takes a bare name after the colon for a modifier.
    `  local words before="\${COMP_WORDS[*]:1:$((COMP_CWORD - 1))} "`,
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
