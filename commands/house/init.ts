import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { assetText } from '../../kernel/assets.ts'
import { openConfig } from '../../kernel/config.ts'
import { accepted, databaseUrl, oneOf } from '../../kernel/variables.ts'
import { OTHER_NAMES, SERVICES, VARIABLES, type ConfigSource } from '../frame/configuration.ts'
import {
  command,
  secretFlag,
  text,
  UsageError,
  value,
  type Call,
  type ConfiguredTools,
} from '../frame/command.ts'
import { checkAll } from './check.ts'
import { collectAnswers, PORTAL } from './init/answers.ts'
import type { Settings } from './init/env-file.ts'
import { EXAMPLE, installUnit, unitPlaces, unitQuestion } from './init/install.ts'
import { settingsFile, settingsOfUnit, type SettingsPlace } from './init/places.ts'
import { proxySetting, PROXIES, SIGN_INS, type ProxyAnswers } from './init/proxy-settings.ts'
import { reportFindings } from '../frame/output.ts'
import { openQuestions, type Questions } from './init/questions.ts'

const SUMMARY =
  'ask for addresses, proxy, database and model; write the settings and show those of the proxy'

const HOST_AND_PORT = accepted('host:port', (text) => {
  return URL.canParse(`http://${text}`) && /^[^/\s]+:\d+$/.test(text) ? text : undefined
})

const FLAGS = {
  // Not --env-file: Node reads that, too, and ends if the file is not there yet.
  file: text('FILE', 'the file to write, ./gatehouse.env unless named'),
  proxy: value('NAME', oneOf(...PROXIES, 'none').form, oneOf(...PROXIES, 'none')),
  'sign-in': value(
    'NAME',
    `what Caddy and nginx ask: ${SIGN_INS.join(' or ')}`,
    oneOf(...SIGN_INS),
  ),
  'sign-in-address': value('HOST:PORT', 'where that listens', HOST_AND_PORT),
  portal: value('URL', "the address of Authelia's page", PORTAL),
  database: {
    ...secretFlag('the URL of PostgreSQL, in place of the embedded database'),
    ...databaseUrl,
  },
  'model-key': secretFlag('the key of --ops-model-url'),
  force: { summary: 'change the file that is there; what is not asked for stays' },
  install: { summary: 'install the systemd unit and write the settings where it reads them' },
}

type InitCall = Call<Record<never, never>, typeof FLAGS>

export const commands = [
  command({
    name: 'init',
    summary: SUMMARY,
    flags: FLAGS,
    needs: 'any configuration',
    check({ flags: { file, install } }) {
      if (file === undefined || !install) return
      throw new UsageError('--install has its own file: leave out --file')
    },
    run: async ({ flags }, tools) => await init(flags, tools),
  }),
]

async function init(flags: InitCall['flags'], tools: ConfiguredTools) {
  const { config, environment, input, output } = tools
  const [wrong] = config.problems.filter(({ variables }) => variables.length === 1)
  if (wrong !== undefined) throw new UsageError(wrong.message)
  using questions = isTerminal(input) ? openQuestions(input) : undefined
  const named = flags.file ?? config.envFile
  const installs = flags.install || (await wantsUnit(named, questions))
  const isForUnit = installs || isFileOfUnit(named, environment['DESTDIR'])
  const place = isForUnit ? settingsOfUnit(tools) : settingsFile(named, tools)
  refuseExisting(place.file, flags.force)
  place.refuseUnwritable()
  const own = place.configuration()
  const asking = { ...tools, config: own }
  const given = secretsOf(flags)
  const answers = await collectAnswers(place.read(), flags, given, questions, asking)
  const settings = withKey(answers.settings, own, tools)
  if (installs) for (const line of installUnit(environment)) output.err(line)
  place.write(settings)
  output.err(`Settings: ${place.file}, ${place.secrecy}`)
  if (answers.proxy !== undefined) showProxy(answers.proxy, settings, { config: own, output })
  const code = await check(place, tools)
  output.err(`Next: ${place.next}`)
  return code
}

/** Whether there is somebody to ask. A secret that is typed for `-` ends the input. */
function isTerminal(input: Readable) {
  return 'isTTY' in input && input.isTTY === true && !input.readableEnded
}

/** A file that is named is not where the unit reads its settings. */
async function wantsUnit(named: string | undefined, questions: Questions | undefined) {
  if (questions === undefined || named !== undefined) return false
  const question = unitQuestion()
  return question !== undefined && (await questions.confirm(question))
}

/** Its settings must be readable for the unit's user, and its secrets are elsewhere. */
function isFileOfUnit(named: string | undefined, root: string | undefined) {
  return named !== undefined && resolve(named) === unitPlaces(root).settings
}

/** The example as it was installed has nothing to keep. */
function refuseExisting(file: string, force: boolean) {
  if (!existsSync(file) || force || readFileSync(file, 'utf8') === assetText(EXAMPLE)) return
  throw new Error(`${file} is there already: --force changes it, and keeps what is not asked for`)
}

function secretsOf(flags: InitCall['flags']): Settings {
  return {
    ...(flags.database !== undefined && { DATABASE_URL: flags.database }),
    ...(flags['model-key'] !== undefined && { OPS_MODEL_KEY: flags['model-key'] }),
  }
}

/**
 * With a database on a server the settings have the key of its secrets: the one of a data directory,
 * whose secrets may have been moved there, else a new one. Else the first start makes the key.
 */
function withKey(settings: Settings, own: ConfigSource, { config, random }: ConfiguredTools) {
  const name = 'GATEHOUSE_SECRET_KEY'
  const url = settings['DATABASE_URL'] ?? own.current.DATABASE_URL
  const [key, ofShell] = [own, config].map(({ origins }) => origins.get(name))
  const isSet = settings[name] !== undefined || (key !== undefined && key.place !== IN_DIRECTORY)
  if (url === undefined || isSet) return settings
  const moved = [key, ofShell].find((origin) => origin?.place === IN_DIRECTORY)
  return { ...settings, [name]: moved?.text ?? random(32).toString('base64') }
}

const IN_DIRECTORY = 'data directory'

/** The setting is all that stands on stdout: it may go to a file. */
function showProxy(
  proxy: ProxyAnswers,
  settings: Settings,
  { config, output }: Pick<ConfiguredTools, 'config' | 'output'>,
) {
  const outside = config.origins.get('GATEHOUSE_TRUSTED_PROXIES')?.text ?? ''
  const trusted = settings['GATEHOUSE_TRUSTED_PROXIES'] ?? outside
  const header = settings['GATEHOUSE_USER_HEADER'] ?? ''
  output.err(
    `The setting of ${proxy.proxy} is below (docs/recipes.md). Gatehouse trusts what connects`,
  )
  output.err(`from ${trusted}, and takes the user from the header ${header}.`)
  for (const line of proxySetting(proxy).trimEnd().split('\n')) output.data(line)
}

/** Runs `gatehouse check` on what was written, as the server will find it. */
async function check({ file, environment }: SettingsPlace, tools: ConfiguredTools) {
  const config = openConfig(VARIABLES, {
    flags: { GATEHOUSE_ENV_FILE: file },
    environment,
    otherNames: OTHER_NAMES,
    collects: true,
  })
  const output = { ...tools.output, out: tools.output.err }
  const findings = await checkAll(SERVICES, { ...tools, environment, config })
  return reportFindings(findings, false, output)
}
