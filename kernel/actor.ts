/** The person at a browser, by what the connection shows (decisions.md section 4, UI sign-in). */
export type Identity =
  /** The trusted proxy has signed somebody in, and names the groups of this request. */
  | { kind: 'user'; email: string; groups: readonly string[] }
  /** Somebody on this machine, without a proxy in between. */
  | { kind: 'operator' }
  | { kind: 'anonymous' }

/** Who acts (decisions.md section 7, Actors). */
export type Actor =
  | Identity
  /** A program that bears a valid token. */
  | { kind: 'token'; name: string }
  /** The command line on this machine. */
  | { kind: 'command' }
  /** The model, or the agent, of a session. */
  | { kind: 'session'; id: number }

/** The texts of actors that are no users. */
const RESERVED = /^(?:operator|anonymous|command)$|^(?:user|token|session) /

/**
 * An actor as audit and log name it. A user has the name that the proxy gives: somebody who signs
 * in as `operator` must not pass for the operator of this machine.
 */
export function actorText(actor: Actor): string {
  const { kind } = actor
  if (kind === 'user') return RESERVED.test(actor.email) ? `user ${actor.email}` : actor.email
  if (kind === 'token') return `token ${actor.name}`
  return kind === 'session' ? `session ${actor.id}` : kind
}
