import { parseAddress } from '../../../kernel/net/listen.ts'
import { accepted, oneOf } from '../../../kernel/variables.ts'
import { UsageError, type ConfiguredTools } from '../../frame/command.ts'
import {
  hostAndPort,
  placeOf,
  SERVICES,
  variableOf,
  type ConfigSource,
  type ServiceName,
  type VariableName,
} from '../../frame/configuration.ts'
import type { Settings } from './env-file.ts'
import {
  asksSignIn,
  IDENTITY_HEADERS,
  PROXIES,
  SIGN_IN_ADDRESSES,
  SIGN_INS,
  type Proxy,
  type ProxyAnswers,
  type SignIn,
} from './proxy-settings.ts'
import type { Questions } from './questions.ts'

/** What flags of `init` say that are no settings. */
export interface ProxyFlags {
  proxy: Proxy | 'none' | undefined
  'sign-in': SignIn | undefined
  'sign-in-address': string | undefined
  portal: URL | undefined
}

/** What was answered: the settings, and the proxy if there is one. */
export interface Answers {
  settings: Settings
  proxy: ProxyAnswers | undefined
}

interface Question {
  name: VariableName
  question: string
  hidden?: true
  /** It is asked only if this setting has a value. */
  after?: VariableName
}

const ADDRESSES: readonly Question[] = SERVICES.map((service) => ({
  name: placeOfBase(service),
  question: `Public address of ${service}, an https:// URL; empty for this machine alone`,
}))

const REST: readonly Question[] = [
  {
    name: 'DATABASE_URL',
    question: 'PostgreSQL, a postgres:// URL (not shown); empty for the embedded database',
    hidden: true,
  },
  {
    name: 'OPS_MODEL_URL',
    question: 'OpenAI-compatible endpoint of a model, which ends in /v1; empty for none',
  },
  { name: 'OPS_MODEL_KEY', question: 'Its key (not shown)', hidden: true, after: 'OPS_MODEL_URL' },
  { name: 'OPS_TIER1_MODEL', question: 'Name of the model for tier 1', after: 'OPS_MODEL_URL' },
  { name: 'OPS_TIER2_MODEL', question: 'Name of the model for tier 2', after: 'OPS_MODEL_URL' },
  { name: 'OPS_TIER3_MODEL', question: 'Name of the model for tier 3', after: 'OPS_MODEL_URL' },
]

const PROXY_CHOICE = oneOf(...PROXIES, 'none')
const SIGN_IN_CHOICE = oneOf(...SIGN_INS)
export const PORTAL = accepted('an https:// URL', (text) => {
  const url = URL.parse(text)
  return url?.protocol === 'https:' ? url : undefined
})

/**
 * Asks for what no flag says, if there is a terminal; then makes settings of it all. Those that are
 * known already stay unless they are changed.
 */
export async function collectAnswers(
  known: Settings,
  flags: ProxyFlags,
  given: Settings,
  questions: Questions | undefined,
  { config }: ConfiguredTools,
): Promise<Answers> {
  const settings: Record<string, string> = { ...known, ...flagsOf(config), ...given }
  await askSettings(ADDRESSES, settings, config, questions)
  const proxy = await askProxy(flags, settings, config, questions)
  await askSettings(REST, settings, config, questions)
  if (proxy !== undefined) {
    const { user, groups } = IDENTITY_HEADERS[proxy.proxy]
    // The file would win over the environment.
    if (!config.origins.has('GATEHOUSE_TRUSTED_PROXIES')) {
      settings['GATEHOUSE_TRUSTED_PROXIES'] ??= '127.0.0.1/32'
    }
    settings['GATEHOUSE_USER_HEADER'] = user
    if (groups !== undefined) settings['GATEHOUSE_GROUPS_HEADER'] = groups
    else delete settings['GATEHOUSE_GROUPS_HEADER']
  }
  return { settings, proxy }
}

/** The settings that were given as flags. */
export function flagsOf({ origins }: ConfigSource): Settings {
  const flags = [...origins].filter(([, { place }]) => place === 'flag')
  return Object.fromEntries(flags.map(([name, { text }]) => [name, text]))
}

function placeOfBase(service: ServiceName) {
  return `${service.toUpperCase() as Uppercase<ServiceName>}_BASE_URL` as const
}

/** Asks for settings that no flag and no variable of the environment has. */
async function askSettings(
  asked: readonly Question[],
  settings: Record<string, string>,
  { origins }: ConfigSource,
  questions: Questions | undefined,
) {
  for (const { name, question, hidden = false, after } of asked) {
    const place = origins.get(name)?.place
    const isGiven = place === 'flag' || place === 'environment' || place === 'credential'
    if (questions === undefined || isGiven) continue
    if (after !== undefined && settings[after] === undefined) continue
    const now = settings[name]
    const stays = now === undefined ? '' : `; now ${hidden ? 'set' : now}, which empty keeps`
    const { form, read } = variableOf(name)
    const readText = (text: string) => (read(text), text)
    const answer = await questions.ask(question + stays, form, readText, hidden)
    if (answer !== undefined) settings[name] = answer
  }
}

async function askProxy(
  flags: ProxyFlags,
  settings: Settings,
  config: ConfigSource,
  questions: Questions | undefined,
): Promise<ProxyAnswers | undefined> {
  const hasAddresses = SERVICES.every((service) => baseUrlOf(service, settings, config))
  if (!hasAddresses) {
    if (flags.proxy === undefined || flags.proxy === 'none') return undefined
    const names = SERVICES.map((service) => `--${service}-base-url`).join(', ')
    throw new UsageError(`--proxy ${flags.proxy} needs ${names}`)
  }
  const { form, read } = PROXY_CHOICE
  const proxy = flags.proxy ?? (await questions?.ask(`Proxy: ${form}`, form, read)) ?? 'none'
  if (proxy === 'none') return undefined
  const signIn = await askSignIn(proxy, flags, questions)
  const services = {
    hooks: publicPlace('hooks', proxy, settings, config),
    links: publicPlace('links', proxy, settings, config),
    ops: publicPlace('ops', proxy, settings, config),
  }
  refuseSharedPorts(proxy, services)
  const { hostname } = services.links.publicUrl
  const [label = ''] = hostname.split('.')
  return {
    proxy,
    signIn,
    services,
    signInAddress: flags['sign-in-address'] ?? SIGN_IN_ADDRESSES[signIn],
    portal: (await askPortal(proxy, signIn, hostname, flags, questions)).origin,
    shortKeyword: settings['LINKS_SHORT_KEYWORD'] ?? config.current.LINKS_SHORT_KEYWORD ?? label,
  }
}

async function askSignIn(proxy: Proxy, flags: ProxyFlags, questions: Questions | undefined) {
  if (!asksSignIn(proxy)) return 'authelia'
  const { form, read } = SIGN_IN_CHOICE
  const asked = () => questions?.ask(`Sign-in service: ${form}; empty for authelia`, form, read)
  return flags['sign-in'] ?? (await asked()) ?? 'authelia'
}

/** Where Authelia shows its page: beside links unless another address is given. */
async function askPortal(
  proxy: Proxy,
  signIn: SignIn,
  hostname: string,
  flags: ProxyFlags,
  questions: Questions | undefined,
) {
  const beside = new URL(`https://auth.${hostname.slice(hostname.indexOf('.') + 1)}`)
  if (flags.portal !== undefined) return flags.portal
  if (proxy !== 'nginx' || signIn !== 'authelia') return beside
  const question = `Address of Authelia's page; empty for ${beside.origin}`
  return (await questions?.ask(question, PORTAL.form, PORTAL.read)) ?? beside
}

/** Tailscale Serve has one name for all services: they differ by their ports. */
function refuseSharedPorts(proxy: Proxy, services: ProxyAnswers['services']) {
  const ports = new Set(SERVICES.map((service) => services[service].publicUrl.port))
  if (proxy !== 'tailscale' || ports.size === SERVICES.length) return
  throw new UsageError('each service needs a port of its own, such as https://NAME.ts.net:8443')
}

/** The public address of a service, and where the proxy finds it. */
function publicPlace(
  service: ServiceName,
  proxy: Proxy,
  settings: Settings,
  config: ConfigSource,
) {
  const variable = placeOfBase(service)
  const publicUrl = new URL(baseUrlOf(service, settings, config) ?? '')
  const hasOwnPort = publicUrl.port !== '' && proxy !== 'tailscale'
  if (publicUrl.protocol !== 'https:' || hasOwnPort) {
    const port = proxy === 'tailscale' ? '' : ' without a port'
    throw new UsageError(`${variable} must be an https:// URL${port}, for ${proxy}`)
  }
  const address = addressOf(service, settings, config)
  // The sockets of the units are at the addresses that Gatehouse listens on by default.
  if (address.kind === 'fd') return { publicUrl, address: defaultAddress(service) }
  if (address.kind === 'tcp') {
    return { publicUrl, address: hostAndPort(address.host, address.port) }
  }
  throw new UsageError(`${service} listens on a unix socket: init knows settings for host:port`)
}

/** The public address: as it will be written, else as the environment has it. */
function baseUrlOf(service: ServiceName, settings: Settings, config: ConfigSource) {
  return settings[placeOfBase(service)] ?? placeOf(service, config).baseUrl
}

/** Where a service listens, likewise. */
function addressOf(service: ServiceName, settings: Settings, config: ConfigSource) {
  const { variable, address } = placeOf(service, config)
  const text = settings[variable]
  return text === undefined ? address : parseAddress(text)
}

function defaultAddress(service: ServiceName) {
  return variableOf(`${service.toUpperCase() as Uppercase<ServiceName>}_ADDR`).default ?? ''
}
