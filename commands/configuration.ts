import Type from 'typebox'
import { openConfig, type ConfigOptions, type ConfigSource as SourceOf } from '../kernel/config.ts'
import { programVariables, type VariableNotes } from '../kernel/variables.ts'
import { hooksVariables } from '../services/hooks/variables.ts'
import { linksVariables } from '../services/links/open.ts'
import { opsVariables } from '../services/ops/variables.ts'

/**
 * Every variable. The name in lower case with dashes, without `GATEHOUSE_`, is its flag: `HOOKS_ADDR` is
 * `--hooks-addr`, `GATEHOUSE_DATA_DIR` is `--data-dir`.
 */
export const Variables = Type.Object({
  ...programVariables,
  ...hooksVariables,
  ...linksVariables,
  ...opsVariables,
})
export type VariableName = keyof typeof Variables.properties
export type ConfigSource = SourceOf<typeof Variables>

export const VARIABLE_NAMES = Object.keys(Variables.properties) as readonly VariableName[]

/** Reads the configuration of the program. */
export function openConfiguration(options: ConfigOptions): ConfigSource {
  return openConfig(Variables, options)
}

/** What a variable's schema says of it for people. */
export function notesOf(name: VariableName): VariableNotes {
  return Variables.properties[name] as unknown as VariableNotes
}

/** The flag of a variable, without the dashes in front; a secret has none, as others can see arguments. */
export function flagOf(name: VariableName): string | undefined {
  const { secret, flag } = notesOf(name)
  if (secret === true) return undefined
  return (flag ?? name.replace(/^GATEHOUSE_/, '').replaceAll('_', '-')).toLowerCase()
}

/** Each variable that is set, with where it comes from; a secret shows only that it is set. */
export function describeConfiguration(
  config: ConfigSource,
): readonly (readonly [string, string])[] {
  return [...config.origins].map(([name, { place, text, secret }]) => {
    return [name, `${secret ? 'set' : text} (${place})`] as const
  })
}

/** The line about names in the environment that Gatehouse does not know. */
export function ignoredText(unknownNames: readonly string[]): string {
  return `unknown in the environment and ignored: ${unknownNames.join(', ')}; see gatehouse help for the names that count`
}
