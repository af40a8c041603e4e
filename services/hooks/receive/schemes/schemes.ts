import type { Places, Preset, Scheme } from './scheme.ts'
import type { Provider } from '../../../../db/hooks/receive/providers.ts'
import { PRESETS } from './presets/presets.ts'

/** Deliveries of any sender whose scheme is not known. */
export const ANY: Places = {
  type: { headers: ['x-event-type'], json: [] },
  id: { headers: ['webhook-id', 'x-delivery-id', 'idempotency-key'], json: [] },
}

const BY_NAME = new Map(PRESETS.map((preset) => [preset.name, preset]))

/** Every scheme that a provider can have. */
export const SCHEME_NAMES: readonly string[] = PRESETS.map(({ name }) => name)

/** The schemes of the built-in providers (hooks.md section 5). */
export const BUILT_IN = { code_host: 'github', payments: 'stripe', chat: 'slack' } as const

type Named = Pick<Provider, 'scheme' | 'scheme_row'>

/** What is known of the sender with a scheme. */
export function presetNamed(name: string | null): Preset | undefined {
  return name === null ? undefined : BY_NAME.get(name)
}

/** The scheme of a provider whose deliveries are signed, with what its operator has changed. */
export function schemeOf({ scheme, scheme_row: row }: Named): Scheme | undefined {
  const found = schemeNamed(scheme)
  return found && { ...found, ...row }
}

/** The scheme of a name; undefined for a sender that signs nothing, and for unknown names. */
export function schemeNamed(name: string | null): Scheme | undefined {
  const { scheme } = presetNamed(name) ?? {}
  return scheme && 'signature' in scheme ? scheme : undefined
}

/** Where a provider's deliveries say what they are. */
export function placesOf({ scheme, scheme_row: row }: Named): Places {
  return { ...(presetNamed(scheme)?.scheme ?? ANY), ...row }
}

/** Whether a delivery can't be understood without its JSON. */
export function needsJson({
  type,
  id,
  timeMember,
  handshake,
}: Places & Pick<Scheme, 'timeMember' | 'handshake'>): boolean {
  return type.json.length + id.json.length > 0 || (timeMember ?? handshake) !== undefined
}
