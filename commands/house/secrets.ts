import { percentDecoded } from '../../kernel/text.ts'
import { AGENT_SECRETS } from '../../services/ops/agent/runners/cli-agents.ts'
import type { ConfigSource } from '../frame/configuration.ts'

/** The current secrets: the same array until the configuration is re-read. */
export function followSecrets(config: ConfigSource): () => readonly string[] {
  let { origins } = config
  let secrets = secretsOf(config)
  return () => {
    if (config.origins !== origins) secrets = secretsOf(config)
    origins = config.origins
    return secrets
  }
}

/**
 * The text of every secret variable that is set, passwords in their URLs, and the agent's keys.
 */
function secretsOf({ origins, environment, current }: ConfigSource): readonly string[] {
  const secrets = AGENT_SECRETS.flatMap((name) => environment[name] ?? [])
  // The variable has several: each is a secret by itself.
  secrets.push(...(current.OPS_NOTIFY_URL ?? []).map(({ url }) => url))
  for (const { secret, text } of origins.values()) {
    if (!secret) continue
    secrets.push(text)
    const { password = '' } = URL.parse(text) ?? {}
    if (password !== '') secrets.push(password, percentDecoded(password) ?? password)
  }
  return secrets
}
