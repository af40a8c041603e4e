import { hostName, isLoopbackName } from '../../kernel/net/addresses.ts'
import { SIGNED_PROVIDERS, secretVariable } from '../../services/hooks/secrets.ts'
import { placeOf, type ServiceName } from '../addresses.ts'
import { fail, ok, warn, type Finding } from './finding.ts'
import { type ConfigSource, ignoredText } from '../configuration.ts'

/** A line for each wrong variable, or one if all are right; and the variables without effect. */
export function configurationFindings(config: ConfigSource): readonly Finding[] {
  const bad = config.problems.map(({ message }) => fail('configuration', message))
  const set = [...config.origins.values()].filter(({ place }) => place !== 'default')
  const all = bad.length > 0 ? bad : [ok('configuration', `variables set: ${set.length}`)]
  return [...all, ...unknown(config), ...idle(config)]
}

/** Names in the environment that Gatehouse does not know: a warning, never a refusal. */
function unknown({ unknownNames }: ConfigSource): readonly Finding[] {
  return unknownNames.length === 0 ? [] : [warn('configuration', ignoredText(unknownNames))]
}

/** Variables that have no effect without another one. */
function idle({ origins, problems }: ConfigSource): readonly Finding[] {
  const pairs = [
    ['HOOKS_QUEUE_URL', 'HOOKS_QUEUE_CHANNELS'],
    ['HOOKS_QUEUE_CHANNELS', 'HOOKS_QUEUE_URL'],
    ['OPS_MODEL_KEY', 'OPS_MODEL_URL'],
    ...SIGNED_PROVIDERS.map((provider) => {
      const variable = secretVariable(provider)
      return [`${variable}_PREVIOUS`, variable] as const
    }),
  ] as const
  return pairs
    .filter(([name, other]) => origins.has(name) && !origins.has(other))
    .filter(([, other]) => !problems.some(({ variables }) => variables.includes(other)))
    .map(([name, other]) =>
      warn('configuration', `${name} has no effect without ${other}: set that too`),
    )
}

const WHAT = 'GATEHOUSE_TRUSTED_PROXIES'
const UNSEEN =
  "a proxy that leaves no sign of itself can't be seen, and everybody who comes through it counts as a user of this machine"

/** Which proxies are trusted; other proxies may be invisible to Gatehouse. */
export function proxyFindings(
  config: ConfigSource,
  services: readonly ServiceName[],
): readonly Finding[] {
  const trusted = config.origins.get(WHAT)
  if (trusted !== undefined) return [ok(WHAT, `${trusted.text}; of others, ${UNSEEN}`)]
  const open = services.find((service) => isPublic(placeOf(service, config).baseUrl))
  if (open === undefined)
    return [ok(WHAT, `none; ${UNSEEN}: set this before you put a proxy in front`)]
  const base = `${open.toUpperCase()}_BASE_URL`
  return [
    warn(WHAT, `none, but ${base} is a public address; ${UNSEEN}: set this to the proxy's address`),
  ]
}

function isPublic(baseUrl: string | undefined): boolean {
  return baseUrl !== undefined && !isLoopbackName(hostName(new URL(baseUrl).host))
}
