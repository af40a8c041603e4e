import { oneOf } from '../kernel/readings.ts'
import { command, value, type Command } from './command.ts'
import { DONE } from './output.ts'

const SHELLS = ['bash', 'zsh', 'fish'] as const

export const commands = [
  command({
    name: 'completion',
    summary: 'print what completes commands and flags: source <(gatehouse completion bash)',
    args: { shell: value('bash|zsh|fish', 'the shell', oneOf(...SHELLS)) },
    needs: 'nothing',
    async run({ args: { shell } }, { loadCommands, output }) {
      const rows = await loadCommands()
      if (shell === 'fish') output.data(fishScript(rows))
      // zsh runs functions that are written for bash.
      else output.data(`${shell === 'zsh' ? ZSH_START : ''}${bashScript(rows)}`)
      return DONE
    },
  }),
]

const ZSH_START = 'autoload -U +X compinit bashcompinit && compinit && bashcompinit\n'

/** What may follow the words of each command; an empty name stands for the beginning. */
function wordsAfter(rows: readonly Command[]): ReadonlyMap<string, readonly string[]> {
  const after = new Map<string, string[]>()
  const add = (name: string, words: readonly string[]): unknown =>
    after.set(name, [...new Set([...(after.get(name) ?? []), ...words])])
  for (const { name, args = {}, flags = {} } of rows) {
    const [first = '', action] = name.split(' ')
    add('', [first])
    if (action !== undefined) add(first, [action])
    // Of the arguments only fixed words, as in `[hooks] [links]` or `user|admin`.
    const fixed = Object.values(args).flatMap(({ shown }) => shown.match(/\b[a-z]+\b/g) ?? [])
    add(name, [...fixed, ...Object.keys(flags).map((flag) => `--${flag}`), '--help'])
  }
  return after
}

function bashScript(rows: readonly Command[]): string {
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

function fishScript(rows: readonly Command[]): string {
  const lines = [...wordsAfter(rows)].map(([name, words]) => {
    const given = ['gatehouse', ...name.split(' ').filter((word) => word !== '')].join(' ')
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
