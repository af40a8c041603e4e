import { ignoredText, type ConfigSource } from '../../kernel/config.ts'
import { SIGNED_PROVIDERS, secretVariable } from '../../services/hooks/secrets.ts'
import { doubt, fine, wrong, type Finding } from './finding.ts'

/** A line for each variable that is wrong, or one for all; and what has no effect. */
export function configurationFindings(config: ConfigSource): readonly Finding[] {
  const bad = config.problems.map(({ message }) => wrong('configuration', message))
  const set = [...config.origins.values()].filter(({ place }) => place !== 'default')
  const all = bad.length > 0 ? bad : [fine('configuration', `variables set: ${set.length}`)]
  return [...all, ...unknown(config), ...idle(config)]
}

/** Names in the environment that Gatehouse does not know: a warning, never a refusal. */
function unknown({ unknownNames }: ConfigSource): readonly Finding[] {
  return unknownNames.length === 0 ? [] : [doubt('configuration', ignoredText(unknownNames))]
}

/** Variables that do nothing without another one. */
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
      doubt('configuration', `${name} has no effect without ${other}: set that too`),
    )
}
