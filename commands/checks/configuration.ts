import type { ConfigSource } from '../../kernel/config.ts'
import { doubt, fine, wrong, type Finding } from './finding.ts'

/** A line for each variable that is wrong, or one for all; and what is set and has no effect. */
export function configurationFindings(config: ConfigSource): readonly Finding[] {
  const bad = config.problems.map(({ message }) => wrong('configuration', message))
  const set = [...config.origins.values()].filter(({ place }) => place !== 'default')
  const all = bad.length > 0 ? bad : [fine('configuration', `variables set: ${set.length}`)]
  return [...all, ...idle(config)]
}

/** Variables that do nothing without another one. */
function idle({ origins, problems }: ConfigSource): readonly Finding[] {
  const pairs = [
    ['HOOKS_QUEUE_URL', 'HOOKS_QUEUE_CHANNELS'],
    ['HOOKS_QUEUE_CHANNELS', 'HOOKS_QUEUE_URL'],
    ['OPS_MODEL_KEY', 'OPS_MODEL_URL'],
    ['HOOKS_CODE_HOST_SECRET_PREVIOUS', 'HOOKS_CODE_HOST_SECRET'],
    ['HOOKS_PAYMENTS_SECRET_PREVIOUS', 'HOOKS_PAYMENTS_SECRET'],
    ['HOOKS_CHAT_SECRET_PREVIOUS', 'HOOKS_CHAT_SECRET'],
  ] as const
  return pairs
    .filter(([name, other]) => origins.has(name) && !origins.has(other))
    .filter(([, other]) => !problems.some(({ variables }) => variables.includes(other)))
    .map(([name, other]) =>
      doubt('configuration', `${name} has no effect without ${other}: set that too`),
    )
}
