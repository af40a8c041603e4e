/** The providers that always exist; their deliveries are signed (hooks.md section 5). */
export const SIGNED_PROVIDERS = ['code_host', 'payments', 'chat'] as const
export type SignedProvider = (typeof SIGNED_PROVIDERS)[number]

export function isSignedProvider(name: string): name is SignedProvider {
  return SIGNED_PROVIDERS.some((signed) => signed === name)
}

/** True for a name that `/webhooks/generic/{name}` can have (hooks.md section 4). */
export function isGenericName(name: string): boolean {
  return /^[a-z0-9][a-z0-9_-]{0,63}$/.test(name)
}
