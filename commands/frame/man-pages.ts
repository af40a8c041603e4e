import type { Command } from './command.ts'
import { flagOf, variableOf, VARIABLE_NAMES, type VariableName } from './configuration.ts'
import { partsOf, usageParts } from './usage.ts'

/** The man page gatehouse(1) in troff, made of the table of commands. */
export function commandsPage(rows: readonly Command[], version: string): string {
  const commandLines = rows.flatMap((row) => [
    '.SS',
    roff(usageParts(row).join(' ')),
    roff(row.summary),
    ...partsOf(row).flatMap(([part, summary]) => ['.TP', roff(part), roff(summary)]),
  ])
  return page([
    heading('GATEHOUSE', 1, version),
    '.SH NAME',
    roff('gatehouse - webhooks, go/links and an operations agent in one program'),
    '.SH SYNOPSIS',
    'gatehouse [\\fICOMMAND\\fR] [\\fIARGUMENT\\fR ...]',
    '.SH DESCRIPTION',
    roff('Without a command, the services run as with gatehouse serve.'),
    '.SH COMMANDS',
    ...commandLines,
    '.SH ENVIRONMENT',
    roff('Every setting, as a variable, a flag or a line of a file: gatehouse.conf(5).'),
    '.SH EXIT STATUS',
    '0 done, 1 failed, 2 wrong usage.',
    '.SH SEE ALSO',
    roff('gatehouse.conf(5)'),
  ])
}

/** The man page gatehouse.conf(5) in troff, made of the table of variables. */
export function settingsPage(version: string): string {
  return page([
    heading('GATEHOUSE.CONF', 5, version),
    '.SH NAME',
    roff('gatehouse.conf - the settings of Gatehouse'),
    '.SH SYNOPSIS',
    '.I /etc/gatehouse/gatehouse.env',
    '.br',
    '.I /etc/gatehouse/credentials/',
    '.SH DESCRIPTION',
    ...paragraphs(SETTINGS_FILES),
    '.SH SETTINGS',
    ...settingsLines(),
    '.SH SEE ALSO',
    roff('gatehouse(1), systemd.exec(5)'),
  ])
}

/** How the unit of systemd gives the settings to the program. */
const SETTINGS_FILES = [
  'The environment file has lines NAME=value; # begins a comment. It is read again within two ' +
    'seconds of a change. If a value is wrong then, the log says so and the former settings stay.',
  'A secret is a file of its name in lower case in the folder of credentials, for root only. ' +
    'systemd reads it at each start.',
  'GATEHOUSE_ENV_FILE or --env-file names another environment file. A flag wins over the ' +
    'environment file, that over the environment, and that over the default.',
  'gatehouse check says which settings are set, where each comes from, and what is wrong.',
]

function settingsLines(): readonly string[] {
  return VARIABLE_NAMES.flatMap((name) => ['.TP', roff(settingTitle(name)), settingText(name)])
}

function settingTitle(name: VariableName): string {
  const flag = flagOf(name)
  return flag === undefined ? name : `${name}, --${flag}`
}

function settingText(name: VariableName): string {
  const { form, default: fallback = '', counts, secret } = variableOf(name)
  const kind = secret === true ? ['a secret, without a flag'] : []
  const standard = fallback === '' ? [] : [`default ${fallback}`]
  return roff([form, ...kind, ...standard, `counts ${counts}`].join('; '))
}

/** Has no date, so that the same version gives the same page. Long names leave lines ragged. */
function heading(name: string, section: number, version: string): string {
  return `.TH ${name} ${section} "" "gatehouse ${version}"\n.ad l`
}

function page(lines: readonly string[]): string {
  return lines.join('\n')
}

function paragraphs(texts: readonly string[]): readonly string[] {
  return texts.flatMap((text) => ['.PP', roff(text)]).slice(1)
}

/** A line of text as troff reads it: a leading dot or quote would be a request. */
function roff(text: string): string {
  return text.replaceAll('\\', '\\e').replaceAll('-', '\\-').replace(/^[.']/, '\\&$&')
}
