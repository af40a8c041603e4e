import { Fault } from '../kernel/fault.ts'

/** Throws what a service still returns as a refusal. */
export function orFault<T>(result: T): Exclude<T, { readonly message: string } | undefined> {
  if (typeof result === 'object' && result !== null && 'message' in result) {
    throw new Fault(400, 'BAD_REQUEST', String(result.message))
  }
  return result as Exclude<T, { readonly message: string } | undefined>
}
