import { oneOf } from '../../kernel/variables.ts'
import { meantText } from '../../kernel/closest.ts'
import {
  command,
  COMMAND_GROUPS,
  text,
  UsageError,
  value,
  type Command,
  type CommandTable,
} from './command.ts'
import { commandsPage, settingsPage } from './man-pages.ts'
import { table } from './output.ts'
import { withFlags } from './parse.ts'
import { configurationLines, listText, settings, usageText } from './usage.ts'

export const commands = [
  command({
    name: 'help',
    summary: 'explain a command, as --help after it does, a group of commands, or the settings',
    args: {
      topic: {
        ...text(
          '[TOPIC]',
          'a command, such as provider add; hooks, links, ops, house or settings',
        ),
        repeated: true,
      },
    },
    flags: {
      man: { summary: 'print the man page gatehouse(1): gatehouse help --man | man -l -' },
      'man-settings': { summary: 'print the man page gatehouse.conf(5)' },
    },
    needs: 'nothing',
    async run({ args, flags }, { table: commandTable, version, output }) {
      if (flags.man) return void output.data(commandsPage(await commandTable.all(), version))
      if (flags['man-settings']) return void output.data(settingsPage(version))
      output.out(await textOn(args.topic.join(' '), commandTable))
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

async function textOn(topic: string, commandTable: CommandTable): Promise<string> {
  if (topic === '') return SCREEN
  if (topic === 'settings') return settingsText()
  const group = COMMAND_GROUPS.find((known) => known === topic)
  if (group !== undefined) return listText(await commandTable.inGroup(group))
  const all = await commandTable.all()
  const rows = all.filter(({ name }) => `${name} `.startsWith(`${topic} `))
  if (rows.length > 0) return usageText(rows.map((row) => withFlags(row, undefined)))
  const topics = [...COMMAND_GROUPS, 'settings', ...all.map(({ name }) => name)]
  throw new UsageError(`There is no command "${topic}"${meantText(topic, topics)}`)
}

/** One screen of 24 lines by 80 columns: what people do most, and where the rest is. */
const SCREEN = `\
Gatehouse: webhooks, go/links and an operations agent in one program.

  gatehouse                        run all three; gatehouse hooks runs one
  gatehouse init                   write the settings by questions
  gatehouse check                  say of everything whether it is ok

hooks  provider add NAME           let somebody send webhooks here
       events list                 what was received; events replay sends again
       forward TARGET              pass events on to a program on this machine
       destination add NAME URL    deliver events to a URL
links  link add SLUG URL           a short link
       user add EMAIL              who may have links; token create: programs
       import FILE                 links of other tools; export gives them back
ops    checks add NAME             watch something; checks list has the states
       notify add NAME URL         where notices go
       approve ID                  allow an operation that waits
house  backup FILE                 everything in one file; restore puts it back
       db move                     from the embedded database to a server
       docs                        the address of the documentation

More   gatehouse help hooks        or links, ops, house: all commands of one
       gatehouse help COMMAND      what a command takes, such as provider add
       gatehouse help settings     every variable and flag`

/** Every variable with its flag, default and accepted form. */
function settingsText() {
  const head = ['VARIABLE', 'FLAG', 'DEFAULT', 'ACCEPTED']
  return [...configurationLines(), ...table(head, settings())].join('\n')
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
