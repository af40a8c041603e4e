import { notesOf, type ConfigSource } from '../kernel/config.ts'

/** Each variable that is set, with where it comes from; a secret shows only that it is set. */
export function shownConfiguration(config: ConfigSource): readonly (readonly [string, string])[] {
  return [...config.origins].map(([name, { place, text }]) => {
    const value = notesOf(name).secret === true ? 'set' : text
    return [name, `${value} (${place})`] as const
  })
}
