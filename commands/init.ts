import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { PROGRAM_NAME } from '../kernel/assets.ts'
import { openConfig } from '../kernel/config.ts'
import { accepted, databaseUrl, oneOf } from '../kernel/variables.ts'
import { OTHER_NAMES, SERVICES, VARIABLES } from './configuration.ts'
import {
  command,
  secretFlag,
  text,
  UsageError,
  value,
  type Call,
  type ConfiguredTools,
} from './command.ts'
import { checkAll } from './check.ts'
import { collectAnswers } from './init/answers.ts'
import { readSettings, writeSettings, type Settings } from './init/env-file.ts'
import {
  canInstall,
  installUnit,
  readUnitSettings,
  unitPlaces,
  writeUnitSettings,
  type UnitPlaces,
} from './init/install.ts'
import { proxySetting, PROXIES, SIGN_INS, type ProxyAnswers } from './init/proxy-settings.ts'
import { reportFindings } from './output.ts'
import { openQuestions, type Questions } from './init/questions.ts'

const SUMMARY =
  'ask for addresses, proxy, database and model, write the settings, and show the setting of the proxy'

const WEB_URL = accepted('an https:// URL', (text) => {
  const url = URL.parse(text)
  return url?.protocol === 'https:' ? url : undefined
})
const HOST_AND_PORT = accepted('host:port', (text) => {
  return URL.canParse(`http://${text}`) && /^[^/\s]+:\d+$/.test(text) ? text : undefined
})

const FLAGS = {
  // Not --env-file: Node reads that, too, and ends if the file is not there yet.
  file: text('FILE', 'the file to write, ./gatehouse.env unless named'),
  proxy: value('NAME', `${oneOf(...PROXIES, 'none').form}`, oneOf(...PROXIES, 'none')),
  'sign-in': value(
    'NAME',
    `what Caddy and nginx ask: ${SIGN_INS.join(' or ')}`,
    oneOf(...SIGN_INS),
  ),
  'sign-in-address': value('HOST:PORT', 'where that listens', HOST_AND_PORT),
  portal: value('URL', "the address of Authelia's page", WEB_URL),
  database: {
    ...secretFlag('the URL of PostgreSQL; without it the embedded database'),
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
    run: async ({ flags }, tools) => await init(flags, tools),
  }),
]

async function init(flags: InitCall['flags'], tools: ConfiguredTools) {
  const { config, environment, input, output } = tools
  const [wrong] = config.problems.filter(({ variables }) => variables.length === 1)
  if (wrong !== undefined) throw new UsageError(wrong.message)
  using questions = isTerminal(input) ? openQuestions(input) : undefined
  const root = environment['DESTDIR']
  const named = flags.file ?? config.envFile
  const installs = flags.install || (await wantsUnit(named, questions))
  const file = installs ? unitPlaces(root).settings : resolve(named ?? 'gatehouse.env')
  if (existsSync(file) && !flags.force) {
    throw new Error(
      `${file} is there already: --force changes it, and keeps what is not asked for`,
    )
  }
  const known = installs ? readUnitSettings(root) : readSettings(file)
  const given = secretsOf(flags)
  const { settings, proxy } = await collectAnswers(known, flags, given, questions, tools)
  if (installs) {
    for (const line of installUnit(environment).split('\n')) output.err(line)
    writeUnitSettings(settings, root)
  } else writeSettings(file, settings)
  output.err(`Settings: ${file}${installs ? '' : ', which its owner alone may read'}`)
  if (proxy !== undefined) showProxy(proxy, settings, tools)
  const code = await check(file, installs ? unitPlaces(root) : undefined, tools)
  const next = installs
    ? 'systemctl enable --now gatehouse.service'
    : `${PROGRAM_NAME} serve --env-file ${file}`
  output.err(`Next: ${next}`)
  return code
}

function isTerminal(input: Readable) {
  return 'isTTY' in input && input.isTTY === true
}

/** A file that is named is not where the unit reads its settings. */
async function wantsUnit(named: string | undefined, questions: Questions | undefined) {
  if (questions === undefined || named !== undefined || !canInstall()) return false
  return await questions.confirm('Install the systemd unit?')
}

function secretsOf(flags: InitCall['flags']): Settings {
  return {
    ...(flags.database !== undefined && { DATABASE_URL: flags.database }),
    ...(flags['model-key'] !== undefined && { OPS_MODEL_KEY: flags['model-key'] }),
  }
}

/** The setting is all that stands on stdout: it may go to a file. */
function showProxy(proxy: ProxyAnswers, settings: Settings, { output }: ConfiguredTools) {
  const trusted = settings['GATEHOUSE_TRUSTED_PROXIES'] ?? ''
  const header = settings['GATEHOUSE_USER_HEADER'] ?? ''
  output.err(`Setting of ${proxy.proxy}: below. It must come from ${trusted}, and name who is`)
  output.err(`signed in as ${header}. See docs/recipes.md.`)
  for (const line of proxySetting(proxy).trimEnd().split('\n')) output.data(line)
}

/** Runs `gatehouse check` on what was written. */
async function check(file: string, unit: UnitPlaces | undefined, tools: ConfiguredTools) {
  const own = unit && { CREDENTIALS_DIRECTORY: unit.credentials, STATE_DIRECTORY: unit.state }
  const environment = { ...tools.environment, ...own }
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
